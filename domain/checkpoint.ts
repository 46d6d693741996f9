/** Written last, after everything it names (design.md, 4). */
export interface Checkpoint {
  /** Schema of this file. */
  version: 1;
  run: string;
  stage: 'sft' | 'warmup' | 'train';
  /** SFT chunks done. */
  sftChunks: number;
  /** Policy updates done; 0 after SFT and during warm-up. */
  update: number;
  /** Critic warm-up updates done. */
  warmup: number;
  /** Training checkpoint of the engine (weights and moments), `tinker://...`. */
  weights: string;
  /** Sampler checkpoint of the same weights. */
  sampler: string;
  /** Files relative to the run folder with their sha256: policy, critic, moments. The store fills it in. */
  files: Record<string, string>;
  /** sha256 of the resolved config. */
  config: string;
  /** Versions of what produced it: node, tapwright, backend, cpu flags. */
  producer: Record<string, string>;
}

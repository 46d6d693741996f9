import type { Tokenizer } from './tokenizer.ts';

/** After a trigger the next tokens come from `allowed`, until a closer; not a closer right after a trigger. */
export interface LabelConstraint {
  triggers: number[];
  closers: number[];
  allowed: number[];
}

/** The decode-time mask over on-screen labels: the same in sampling and in training, so ratios stay honest. */
export function labelConstraint(tokenizer: Tokenizer, allowed: number[] | null): LabelConstraint | null {
  if (!allowed || allowed.length === 0) return null;
  const ids = (words: string[]): number[] => words.map((word) => tokenizer.id(word)!);
  return { triggers: ids(['tap', 'press', 'see']), closers: ids(['<do>', '<rest>', '<end>']), allowed };
}

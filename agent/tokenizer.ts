import { hashSeed } from '../rl/random.ts';
import { MARKS, PLAN_WORDS, ROLE_WORD } from './vocabulary.ts';

export interface TokenizerOptions {
  /** The suite's words; order and repeats do not matter. */
  words: readonly string[];
  /** Ids kept for words outside the vocabulary; fewer, but a third of them at least, where that keeps it to 512 ids. */
  hashed?: number;
}

/** Which unknown word stands behind a hashed id in one prompt. */
export type WordTable = Map<number, string>;

export interface Tokenizer {
  /** Number of ids, a multiple of 64: the model's vocabulary size. */
  readonly size: number;
  /** Changes whenever an id's meaning does. */
  readonly version: string;
  readonly end: number;
  id(word: string): number | undefined;
  /**
   * Unknown words get a hashed id each; two of them in one table never share one while there are ids left. Then a word
   * shares the id it hashes to, which decodes to the earlier word: a page of nonsense must not stop a run.
   */
  encode(words: readonly string[], table?: WordTable): { ids: number[]; table: WordTable };
  /** A hashed id decodes to the word of `table` it came from, so what was never seen can be copied. */
  decode(ids: readonly number[], table: WordTable): string[];
}

/** Ids that a base model has unless its name says otherwise. */
const MODEL_SIZE = 512;

/** Word-level tokenizer of the embedded planner (engine.md, 2). Ids: marks, roles, plan words, suite words, hashed. */
export function createTokenizer({ words, hashed = 96 }: TokenizerOptions): Tokenizer {
  const known = [...new Set([...MARKS, ...Object.values(ROLE_WORD), ...PLAN_WORDS])];
  const reserved = new Set(known);
  const own = [...new Set(words)].filter((word) => word !== '' && !reserved.has(word)).sort();
  const list = [...known, ...own];
  const ids = new Map(list.map((word, id) => [word, id]));
  const firstHashed = list.length;
  const sizeWith = (spare: number): number => Math.ceil((firstHashed + spare) / 64) * 64;
  const size = Math.max(sizeWith(Math.ceil(hashed / 3)), Math.min(MODEL_SIZE, sizeWith(hashed)));
  // The padding to 64 is used too: more hashed ids, fewer probes.
  const slots = size - firstHashed;

  const hashedId = (word: string, table: WordTable): number => {
    const home = hashSeed('word', word) % slots;
    let slot = home;
    for (let probes = 0; probes < slots; probes++, slot = (slot + 1) % slots) {
      const id = firstHashed + slot;
      const taken = table.get(id);
      if (taken === undefined) table.set(id, word);
      if (taken === undefined || taken === word) return id;
    }
    return firstHashed + home;
  };

  return {
    size,
    version: hashSeed(...list, size)
      .toString(16)
      .padStart(8, '0'),
    end: ids.get('<end>')!,
    id: (word) => ids.get(word),
    encode(text, table = new Map()) {
      return { ids: text.map((word) => ids.get(word) ?? hashedId(word, table)), table };
    },
    decode: (tokens, table) => tokens.map((id) => list[id] ?? table.get(id) ?? `<unknown:${id}>`),
  };
}

/** Words of a text, by white space. */
export const wordsOf = (text: string): string[] => text.split(/\s+/).filter(Boolean);

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import loadWabt from 'wabt';
import { TapwrightError } from '../../domain/errors.ts';

/** What is used of the global of that name, which the types of Node leave out. */
interface WebAssemblyApi {
  Module: new (bytes: Uint8Array) => object;
  Instance: new (module: object) => { exports: unknown };
}
const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyApi }).WebAssembly;

/** Kernels of attention.wat; addresses in bytes. */
interface Kernels {
  memory: { buffer: ArrayBuffer; grow(pages: number): number };
  dots(x: number, keys: number, count: number, stride: number, width: number, scale: number, out: number): number;
  attend(
    q: number,
    keys: number,
    values: number,
    count: number,
    d: number,
    head: number,
    scale: number,
    scores: number,
    out: number,
  ): void;
}

const FILE = fileURLToPath(new URL('./attention.wat', import.meta.url));
const compiled = await compile();

async function compile(): Promise<object> {
  const wabt = await loadWabt();
  const parsed = wabt.parseWat(FILE, readFileSync(FILE), { simd: true, sat_float_to_int: true });
  try {
    return new Module(parsed.toBinary({}).buffer);
  } finally {
    parsed.destroy();
  }
}

const PAGE = 65536;
const SMALLEST = 1024;
const LARGE = 2 ** 20;

/**
 * Attention over keys and values that stay in the memory of the kernels, so that no step copies them. Places are indices
 * into `floats()`; every length is a multiple of four numbers.
 */
export interface Attention {
  /** All of the memory. `allocate` may move it: ask again after that. */
  floats(): Float32Array;
  /** Room for `count` numbers, of unknown content. */
  allocate(count: number): number;
  /** Gives back what `allocate(count)` gave. */
  release(at: number, count: number): void;
  /** Numbers that are allocated now. */
  used(): number;
  /** out[t] = scale * (x . keys[t]), `width` numbers each, keys `stride` apart. */
  dots(x: number, keys: number, count: number, stride: number, width: number, scale: number, out: number): void;
  /** out = softmax(q . keys / sqrt(head)) values, head by head, over `count` positions of `d` numbers each. */
  attend(q: number, keys: number, values: number, count: number, d: number, head: number, out: number): void;
}

export function createAttention(): Attention {
  const kernels = new Instance(compiled).exports as Kernels;
  const { memory } = kernels;
  let view = new Float32Array(memory.buffer);
  let top = 0;
  let used = 0;
  /** Places that were given back, by size: a power of two. */
  const free = new Map<number, number[]>();
  let scores = { at: 0, count: 0 };

  /** Powers of two up to a million numbers, whole millions beyond. */
  const sizeOf = (count: number): number =>
    count > LARGE ? LARGE * Math.ceil(count / LARGE) : 2 ** Math.ceil(Math.log2(Math.max(SMALLEST, count)));

  /** Errors: `engine_refused` when there is no more memory; nothing has changed then. */
  function allocate(count: number): number {
    const size = sizeOf(count);
    const known = free.get(size)?.pop();
    const at = known ?? top;
    if (known === undefined) {
      if (top + size > view.length) grow(top + size);
      top += size;
    }
    used += size;
    return at;
  }

  /** A quarter more than is needed, because each growth may copy everything; the need alone where that is too much. */
  function grow(length: number): void {
    const pages = (to: number): number => Math.ceil((to - view.length) * (4 / PAGE));
    for (const wanted of [pages(1.25 * length), pages(length)]) {
      try {
        memory.grow(wanted);
        view = new Float32Array(memory.buffer);
        return;
      } catch {
        // Said below.
      }
    }
    throw new TapwrightError(
      'engine_refused',
      `keys and values of ${(used / 2 ** 18).toFixed(0)} MiB are kept, and there is no room for more: sample fewer rows at a time (engine.maxBatch) or fewer tokens a row`,
    );
  }

  function release(at: number, count: number): void {
    const size = sizeOf(count);
    used -= size;
    const list = free.get(size);
    if (list === undefined) free.set(size, [at]);
    else list.push(at);
  }

  /** Room for the scores of one head. */
  function scratch(count: number): number {
    if (scores.count < count + 4) {
      if (scores.count > 0) release(scores.at, scores.count);
      scores = { at: 0, count: 0 };
      scores = { at: allocate(2 * count + 4), count: 2 * count + 4 };
    }
    return scores.at;
  }

  return {
    floats: () => view,
    allocate,
    release,
    used: () => used,
    dots: (x, keys, count, stride, width, scale, out) => {
      kernels.dots(4 * x, 4 * keys, count, 4 * stride, 4 * width, scale, 4 * out);
    },
    attend: (q, keys, values, count, d, head, out) => {
      const room = scratch(count);
      const scale = 1 / Math.sqrt(head);
      kernels.attend(4 * q, 4 * keys, 4 * values, count, 4 * d, 4 * head, scale, 4 * room, 4 * out);
    },
  };
}

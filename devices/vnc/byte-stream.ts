import type { Socket } from 'node:net';
import { TapwrightError } from '../../domain/errors.ts';

/** Bytes that may lie unread before the peer is made to wait. */
const HIGH_WATER = 4 * 1024 * 1024;
/** Largest piece that is read at once: nothing a server says makes us hold more. */
export const MAX_READ = 64 * 1024 * 1024;

/** Bytes that a peer may leave waiting before it counts as one that never reads. */
const MAX_UNSENT = 1024 * 1024;

/** A socket as a stream of exact pieces, one reader at a time. */
export interface ByteStream {
  /** The next `n` bytes. Errors: `connection_dropped` when the peer is gone, or when `n` is out of bounds. */
  read(n: number): Promise<Buffer>;
  write(bytes: Uint8Array): void;
  /** Ends the connection; whoever reads is told `error`. */
  fail(error: TapwrightError): void;
  /** Why it ended; null while it is open. */
  failure(): TapwrightError | null;
}

export function createByteStream(socket: Socket, peer: string): ByteStream {
  let chunks: Buffer[] = [];
  /** Chunks before this one are used up: shifting a long list for each of many small pieces would take quadratic time. */
  let head = 0;
  let buffered = 0;
  let failure: TapwrightError | null = null;
  let waiting: { n: number; resolve: (bytes: Buffer) => void; reject: (error: unknown) => void } | null = null;

  const take = (n: number): Buffer => {
    buffered -= n;
    const parts: Buffer[] = [];
    for (let left = n; left > 0;) {
      const first = chunks[head]!;
      if (first.length <= left) {
        parts.push(first);
        head += 1;
        left -= first.length;
      } else {
        parts.push(first.subarray(0, left));
        chunks[head] = first.subarray(left);
        left = 0;
      }
    }
    if (head > 1024 && 2 * head > chunks.length) [chunks, head] = [chunks.slice(head), 0];
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts, n);
  };

  const serve = (): void => {
    if (waiting === null) {
      if (buffered > HIGH_WATER) socket.pause();
      return;
    }
    const { n, resolve, reject } = waiting;
    if (buffered >= n) {
      waiting = null;
      resolve(take(n));
    } else if (failure !== null) {
      waiting = null;
      reject(failure);
    } else {
      socket.resume();
    }
  };

  const fail = (error: TapwrightError): void => {
    failure ??= error;
    socket.destroy();
    serve();
  };
  socket.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    buffered += chunk.length;
    serve();
  });
  socket.on('error', (cause) => {
    fail(new TapwrightError('connection_dropped', `the connection to ${peer} broke: ${cause.message}`, { cause }));
  });
  socket.on('close', () => fail(new TapwrightError('connection_dropped', `${peer} closed the connection`)));

  return {
    read: (n) =>
      new Promise((resolve, reject) => {
        if (waiting !== null) return reject(new TapwrightError('internal', `${peer}: two readers at once`));
        if (!Number.isInteger(n) || n < 0 || n > MAX_READ) {
          return reject(new TapwrightError('connection_dropped', `${peer} announced ${n} bytes at once`));
        }
        if (n === 0) return resolve(Buffer.alloc(0));
        waiting = { n, resolve, reject };
        serve();
      }),
    write: (bytes) => {
      if (failure !== null) return;
      socket.write(bytes);
      if (socket.writableLength <= MAX_UNSENT) return;
      fail(new TapwrightError('connection_dropped', `${peer} sends, and takes nothing of what is sent to it`));
    },
    fail,
    failure: () => failure,
  };
}

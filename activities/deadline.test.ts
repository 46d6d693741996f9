import { describe, expect, it } from 'vitest';
import { cutShort, untilDeadline } from './deadline.ts';

const never = (): Promise<never> => new Promise(() => undefined);
/** Work that ends only with its signal. */
const patient = (signal: AbortSignal): Promise<never> => cutShort(signal, never());

describe('a deadline', () => {
  it('reaches the work as a signal, and its failure is what the work fails with', async () => {
    await expect(untilDeadline(5, null, patient)).rejects.toMatchObject({ code: 'deadline', retryable: true });
  });

  it('waits for what the work does on its way out', async () => {
    const log: string[] = [];
    const work = async (signal: AbortSignal): Promise<void> => {
      await patient(signal).catch(() => log.push('cut'));
      await new Promise((resolve) => setImmediate(resolve));
      log.push('given back');
    };
    await untilDeadline(5, null, work);
    expect(log).toEqual(['cut', 'given back']);
  });

  it('passes on who cancels, also one who has cancelled before', async () => {
    const caller = new AbortController();
    const late = untilDeadline(60_000, caller.signal, patient);
    caller.abort(new Error('stop'));
    await expect(late).rejects.toThrow('stop');
    await expect(untilDeadline(60_000, caller.signal, patient)).rejects.toThrow('stop');
  });

  it('leaves work alone that is done in time, and its failure too', async () => {
    expect(await untilDeadline(60_000, null, () => Promise.resolve(3))).toBe(3);
    await expect(untilDeadline(60_000, null, () => Promise.reject(new Error('own')))).rejects.toThrow('own');
    expect(await cutShort(null, Promise.resolve(4))).toBe(4);
  });
});

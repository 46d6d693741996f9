import type { Concept } from './concepts.ts';
import { list, pageOf, scalar, type Phone } from './model.ts';
import { viewOf, type Skin } from './skin.ts';

/** A condition on the phone's data. */
export type Condition = { is: string; key: string } | { has: string; list: string } | { lacks: string; list: string };

/** A text on the way to the goal: known from the task, or a fact that only the user has. */
export type DraftValue = { text: string } | { fact: string; text: string };

/** What a task asks of the phone, and what search needs to know to stay on relevant ground. */
export interface Goal {
  conditions: Condition[];
  /** Field -> what a form on the way must hold. */
  drafts: Record<string, DraftValue>;
  /** Lists that must hold an entry on the way (a cart). */
  stops: { list: string; has: string }[];
  apps: Concept[];
  /** Entries whose pages are worth opening. */
  entries: string[];
  /** Impossible tasks: the page on which, seen to its end, the thing is not. */
  evidence: { app: Concept; page: string } | null;
}

export function holds(phone: Phone, condition: Condition): boolean {
  if ('is' in condition) return scalar(phone, condition.key) === condition.is;
  if ('has' in condition) return list(phone, condition.list).includes(condition.has);
  return !list(phone, condition.list).includes(condition.lacks);
}

/** All conditions hold; for an impossible task: the evidence was seen. */
export const goalHolds = (phone: Phone, goal: Goal): boolean =>
  goal.evidence ? phone.evidence : goal.conditions.every((condition) => holds(phone, condition));

/** Notes evidence that is in view now; every transition is followed by this. */
export function witness(phone: Phone, goal: Goal, skin: Skin): Phone {
  const { evidence } = goal;
  if (!evidence || phone.evidence || phone.popup || phone.menu !== null) return phone;
  if (phone.app !== evidence.app || pageOf(phone) !== evidence.page) return phone;
  return viewOf(phone, skin).canScrollDown ? phone : { ...phone, evidence: true };
}

import type { Role } from '../domain/index.ts';

/** Tokens that structure a prompt or a response. Their order is their id: append only. */
export const MARKS = [
  '<pad>',
  '<task>',
  '<said>',
  '<hist>',
  '<rem>',
  '<app>',
  '<screen>',
  '<act>',
  '<do>',
  '<rest>',
  '<end>',
  '<ok>',
  '<same>',
  '<no>',
  '<bad>',
] as const;
export type Mark = (typeof MARKS)[number];

/** How an outline role is written. */
export const ROLE_WORD: Record<Role, string> = {
  button: '<button>',
  row: '<row>',
  switch: '<switch>',
  checkbox: '<check>',
  radio: '<radio>',
  field: '<field>',
  tab: '<tab>',
  link: '<link>',
  icon: '<icon>',
  slider: '<slider>',
  label: '<text>',
};

/** Words of step plans and of the reasoning style; values of switches. */
export const PLAN_WORDS = [
  'tap', 'press', 'swipe', 'type', 'home', 'wait', 'ask', 'done', 'blocked',
  'up', 'down', 'left', 'right',
  'see', 'need', 'look', 'more', 'all', 'set', 'not', 'here', 'write', 'it', 'go', 'back',
  'on', 'off', 'focus', 'pick', 'hold', 'i', 'do', 'know',
] as const; // prettier-ignore

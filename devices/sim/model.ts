import type { Role } from '../../domain/index.ts';
import type { Concept } from './concepts.ts';

/** The whole state of a simulated phone: plain data, copied by value; snapshot and rollback are a copy. */
export interface Phone {
  /** App in front; null: the home screen. */
  app: Concept | null;
  /** Open pages of the app in front, the visible one last, e.g. `root`, `network`, `entry:alice`. */
  stack: string[];
  scroll: number;
  /** Field that has the keyboard. */
  focus: string | null;
  /** Entry whose menu a long press opened. */
  menu: string | null;
  /** What is typed or chosen on a form but not yet committed. */
  draft: Record<string, string>;
  /** Everything that lasts: settings, lists. A missing switch is `off`, a missing list is empty. */
  data: Record<string, string | string[]>;
  /** App that will ask for a rating when it is opened; null when it has or never will. */
  popupIn: Concept | null;
  popup: boolean;
  /** User facts that were told. */
  known: string[];
  /** The agent has seen that what it was to look for is not there. */
  evidence: boolean;
  /** Apps on the home screen; absent: the core ones. */
  apps?: readonly Concept[];
}

/** What one visible thing does when tapped. */
export type Effect =
  | { do: 'nothing' }
  | { do: 'launch'; app: Concept }
  | { do: 'open'; page: string }
  | { do: 'back' }
  | { do: 'toggle'; key: string }
  | { do: 'set'; key: string; to: string; pop: boolean }
  | { do: 'focus'; field: string }
  | { do: 'choose'; field: string; to: string }
  /** Puts `head` and the drafts of `from`, joined by spaces, at the end of a list, and the first draft at the end of `also`. */
  | { do: 'commit'; list: string; from: string[]; head?: string; also?: string }
  | { do: 'add'; list: string; entry: string; pop: boolean }
  /** Moves all of a cart to what is bought, each with the voucher that is typed. */
  | { do: 'buy'; cart: string; bought: string }
  | { do: 'remove'; list: string; entry: string }
  | { do: 'dismiss' };

/** One thing on a page. Its label is a concept (worded by the skin) or content as it is. */
export interface Item {
  role: Role;
  label: { concept: Concept } | { text: string };
  value?: string;
  tap: Effect;
  /** Entry whose menu a long press opens. */
  menu?: string;
  /** Pinned items do not scroll: `top` and `bottom` bars. */
  bar?: 'back' | 'action';
  focused?: boolean;
}

export const list = (phone: Phone, key: string): string[] => {
  const value = phone.data[key];
  return Array.isArray(value) ? value : [];
};
export const scalar = (phone: Phone, key: string): string => {
  const value = phone.data[key];
  return typeof value === 'string' ? value : 'off';
};

export function freshPhone(data: Phone['data']): Phone {
  return {
    app: null,
    stack: [],
    scroll: 0,
    focus: null,
    menu: null,
    draft: {},
    data,
    popupIn: null,
    popup: false,
    known: [],
    evidence: false,
  };
}

/** The page in front. */
export const pageOf = (phone: Phone): string => phone.stack.at(-1) ?? 'root';

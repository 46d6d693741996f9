import { TapwrightError, type Intent, type Screen, type Truth } from '../../domain/index.ts';
import { span } from '../../domain/spans.ts';
import type { DeviceBackend, DeviceHandle, ExpertMove, OpenOptions } from '../device.ts';
import { remainingWords } from '../expert-words.ts';
import { createFaults } from './faults.ts';
import { goalHolds, witness, type Goal } from './goal.ts';
import type { Phone } from './model.ts';
import { createRenderer, type Frame, type Renderer } from './render.ts';
import { createNavigator, neededFact, stateKey, type Navigator } from './search.ts';
import { HEIGHT, WIDTH, outlineOf, viewOf, type Shown, type Skin, type View } from './skin.ts';
import { apply, home, longPress, scroll, typeText } from './transition.ts';

/** What a simulated phone rolls back to: everything, so that a task instance is self-contained. */
export interface SimSnapshot {
  skin: Skin;
  goal: Goal;
  phone: Phone;
}

const UNSEEN: Frame = { hash: '', degenerate: true, png: null };

/** Why, in the planner's few words. */
function reasonFor(intent: Intent): string {
  switch (intent.kind) {
    case 'tap':
    case 'long_press':
      return `see ${intent.target}`;
    case 'text_entry':
      return 'write it';
    case 'swipe':
      return 'look more';
    case 'ask_user':
      return `need ${intent.question}`;
    default:
      return 'go home';
  }
}

/** Simulated phones in this process: state is a plain object, rollback a copy, pixels are drawn on demand. */
export function createSimBackend(): DeviceBackend {
  const renderer = createRenderer();
  // The attempts of a group share a task, so they share its search too.
  const navigators = new Map<string, Navigator>();
  const navigatorOf = (id: string, snapshot: SimSnapshot): Navigator => {
    let navigator = navigators.get(id);
    if (!navigator) {
      navigator = createNavigator(snapshot.goal, snapshot.skin);
      if (navigators.size >= 256) navigators.delete(navigators.keys().next().value!);
      navigators.set(id, navigator);
    }
    return navigator;
  };
  return {
    name: 'sim',
    capabilities: { touch: true, unicodeText: true, snapshot: 'machine', outline: true, groundTruth: true },
    open(options) {
      const snapshot = parseSnapshot(options.task.snapshot);
      return Promise.resolve(timed(createHandle(options, snapshot, navigatorOf(options.task.id, snapshot), renderer)));
    },
    health: () => Promise.resolve({ ok: true, detail: 'simulated phones run in this process' }),
    close: () => Promise.resolve(),
  };
}

/** A phone's own time, without what is drawn. */
const timed = (handle: DeviceHandle): DeviceHandle => ({
  ...handle,
  rollback: () => span('environment', handle.rollback),
  observe: () => span('environment', handle.observe),
  perform: (action) => span('environment', () => handle.perform(action)),
  truth: () => span('environment', handle.truth),
  expert: () => span('environment', handle.expert),
});

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

function parseSnapshot(text: string): SimSnapshot {
  try {
    const snapshot = JSON.parse(text) as SimSnapshot;
    if (snapshot.skin && snapshot.goal && snapshot.phone) return snapshot;
  } catch {
    // Said below, with what to do.
  }
  throw new TapwrightError(
    'rollback_failed',
    'The task names no snapshot of a simulated phone; take it from suite sim-phones.',
  );
}

function createHandle(
  options: OpenOptions,
  snapshot: SimSnapshot,
  navigator: Navigator,
  renderer: Renderer,
): DeviceHandle {
  const { skin, goal } = snapshot;
  const faults = createFaults(options);
  const draw = (view: View, png: boolean): Promise<Frame> =>
    options.frames === false ? Promise.resolve(UNSEEN) : renderer.frame(view, skin.family, png);
  let phone: Phone = snapshot.phone;
  let frame = 0;
  let previous: Screen | null = null;

  const become = (next: Phone): void => {
    phone = witness(next, goal, skin);
  };

  const observe = async (): Promise<Screen> => {
    const view = viewOf(phone, skin);
    const outline = outlineOf(view);
    const drawn = await draw(view, options.pixels !== null);
    // What the hash is too coarse for counts too: a frozen frame is harmless only while nothing on it has changed.
    if (faults.frozen() && previous && (previous.hash !== drawn.hash || !same(previous.outline, outline)))
      throw new TapwrightError('frame_stale', 'The screen shows a frame from before the action (frozen).');
    previous = {
      png: options.pixels && drawn.png ? await options.pixels(drawn.png) : null,
      width: WIDTH,
      height: HEIGHT,
      scale: 1,
      space: 'pixel',
      frame: frame++,
      hash: drawn.hash,
      degenerate: drawn.degenerate,
      app: view.title,
      outline,
    };
    return previous;
  };

  const hit = (at: { x: number; y: number }): Shown | undefined =>
    viewOf(phone, skin).shown.find(
      ({ box }) => at.x >= box.x && at.y >= box.y && at.x < box.x + box.width && at.y < box.y + box.height,
    );

  return {
    async rollback() {
      phone = structuredClone(snapshot.phone);
      if (faults.stale()) become({ ...phone, app: 'settings', stack: ['root'] });
      frame = 0;
      previous = null;
      const drawn = await draw(viewOf(snapshot.phone, skin), false);
      return { frame: 0, hash: drawn.hash };
    },
    observe,
    perform(action) {
      faults.beforeAction();
      switch (action.kind) {
        case 'tap':
        case 'long_press': {
          const { x, y } = action.at;
          if (x < 0 || y < 0 || x >= WIDTH || y >= HEIGHT)
            return Promise.resolve({ verified: false, strategy: 'touch', note: 'off_screen' });
          const target = hit(action.at);
          if (!target) return Promise.resolve({ verified: true, strategy: 'touch', note: 'nothing_there' });
          become(action.kind === 'tap' ? apply(phone, target.item.tap) : longPress(phone, target.item));
          return Promise.resolve({ verified: true, strategy: 'touch' });
        }
        case 'swipe': {
          const [dx, dy] = [action.to.x - action.from.x, action.to.y - action.from.y];
          if (Math.abs(dy) > Math.abs(dx)) become(scroll(phone, viewOf(phone, skin), dy < 0 ? 'up' : 'down'));
          return Promise.resolve({ verified: true, strategy: 'touch' });
        }
        case 'text_entry': {
          const next = typeText(phone, action.text);
          if (!next) return Promise.resolve({ verified: false, strategy: 'keys', note: 'no_focus' });
          become(next);
          faults.checkText(action.text);
          return Promise.resolve({ verified: true, strategy: 'keys' });
        }
        case 'navigate_home':
          become(home(phone));
          return Promise.resolve({ verified: true, strategy: 'button' });
        case 'wait':
          return Promise.resolve({ verified: true, strategy: 'none' });
      }
    },
    truth(): Promise<Truth> {
      const route = navigator.route(phone);
      return Promise.resolve({
        key: stateKey(phone),
        goalHolds: goalHolds(phone, goal),
        distance: route?.distance ?? null,
        needsFact: neededFact(route),
      });
    },
    expert(): Promise<ExpertMove | null> {
      if (goalHolds(phone, goal)) {
        const claim = goal.evidence ? 'blocked' : 'done';
        const reasoning = goal.evidence ? 'not here' : 'all set';
        return Promise.resolve({ intent: { kind: 'task_complete', claim }, reasoning, remaining: '' });
      }
      const route = navigator.route(phone);
      const intent = route?.moves[0];
      if (!route || !intent) return Promise.resolve(null);
      const end = goal.evidence ? 'blocked' : 'done';
      const remaining = remainingWords(route.moves.slice(1), end);
      return Promise.resolve({ intent, reasoning: reasonFor(intent), remaining });
    },
    noteAnswer(fact) {
      if (fact !== null && !phone.known.includes(fact)) become({ ...phone, known: [...phone.known, fact] });
    },
    close: () => Promise.resolve(),
  };
}

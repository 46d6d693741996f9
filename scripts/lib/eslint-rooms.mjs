// The import rule of the architecture (docs, "Rooms"): imports point only upward in this table.
import { posix, relative, sep } from 'node:path';

/**
 * For each room what it may import as a value, and what it may import as types only. An entry names a room, or one file
 * of a room without its ending: contracts (`devices/device`, `suites/suite`, `judges/judge`, `agent/ports`) may be
 * known where the room behind them may not.
 */
const CONTRACTS = ['devices/device', 'suites/suite', 'judges/judge', 'agent/ports', 'configs/schema'];
const pure = ['domain'];
const every = ['domain', 'rl', 'configs', 'agent', 'judges', 'devices', 'suites', 'engine', 'store'];
export const ROOMS = {
  domain: { values: [], types: [] },
  rl: { values: pure, types: [] },
  configs: { values: pure, types: [] },
  agent: { values: [...pure, 'rl'], types: CONTRACTS },
  judges: { values: [...pure, 'rl'], types: CONTRACTS },
  devices: { values: [...pure, 'rl', 'devices/device'], types: CONTRACTS },
  suites: { values: [...pure, 'rl', 'devices'], types: CONTRACTS },
  engine: { values: [...pure, 'rl'], types: ['configs/schema'] },
  store: { values: pure, types: ['configs/schema'] },
  workflows: { values: [...pure, 'rl', 'agent/loop'], types: ['activities', 'configs', ...CONTRACTS] },
  activities: {
    values: [...every, 'workflows/failures', 'workflows/ids', 'workflows/roll-out', 'workflows/spec'],
    types: ['workflows'],
  },
  workers: { values: [...every, 'activities', 'workflows/queues', 'workflows/ids', 'scripts'], types: ['workflows'] },
};

/** The room of a path relative to the project and its name without ending: `['rl', 'rl/gae']`. */
function place(path) {
  const name = path.replace(/\.(d\.)?[cm]?[jt]s$/, '');
  return [name.split('/')[0], name];
}

function allowed(list, room, name) {
  return list.some((entry) => entry === room || entry === name);
}

/** ESLint rule: `rooms` with one option, the project's folder. */
export const roomsRule = {
  meta: {
    type: 'problem',
    docs: { description: 'imports point only upward in the table of rooms' },
    schema: [{ type: 'object', properties: { root: { type: 'string' } }, additionalProperties: false }],
    messages: {
      value:
        '{{from}}/ may not import {{to}}: imports point only upward in the table of rooms (scripts/lib/eslint-rooms.mjs).',
      type: '{{from}}/ may import types of {{to}} only: write `import type`.',
    },
  },
  create(context) {
    const file = relative(context.options[0].root, context.filename).split(sep).join('/');
    const [from] = place(file);
    const rules = ROOMS[from];
    if (rules === undefined) return {};

    function check(node, source, typeOnly) {
      if (typeof source?.value !== 'string' || !source.value.startsWith('.')) return;
      const target = posix.join(posix.dirname(file), source.value);
      const [room, name] = place(target);
      if (room === from || allowed(rules.values, room, name)) return;
      const typesAllowed = allowed(rules.types, room, name);
      if (typesAllowed && typeOnly) return;
      context.report({ node, messageId: typesAllowed ? 'type' : 'value', data: { from, to: name } });
    }
    const typeOnly = (node, kind, list) =>
      node[kind] === 'type' || (list?.length > 0 && list.every((item) => item[kind] === 'type'));

    return {
      ImportDeclaration: (node) => check(node, node.source, typeOnly(node, 'importKind', node.specifiers)),
      ExportNamedDeclaration: (node) => check(node, node.source, typeOnly(node, 'exportKind', node.specifiers)),
      ExportAllDeclaration: (node) => check(node, node.source, typeOnly(node, 'exportKind')),
      ImportExpression: (node) => check(node, node.source, false),
      TSImportType: (node) => check(node, node.source ?? node.argument?.literal ?? node.argument, true),
    };
  },
};

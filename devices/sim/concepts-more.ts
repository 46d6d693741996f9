/** Words of the apps beyond the core ones; the same rules as in concepts.ts. */
export const MORE_CONCEPTS = {
  // Apps.
  todo: ['todo', 'tasks', 'checklist', 'chores', 'errands'],
  maps: ['maps', 'atlas', 'navigator', 'routes', 'charts'],
  bank: ['bank', 'wallet', 'money', 'finance', 'savings'],
  travel: ['travel', 'trips', 'flights', 'tickets', 'journeys'],
  gallery: ['gallery', 'album', 'pictures', 'images', 'snapshots'],
  food: ['food', 'delivery', 'meals', 'takeaway', 'diner'],
  fitness: ['fitness', 'workout', 'health', 'exercise', 'gym'],
  house: ['house', 'rooms', 'smarthome', 'devices', 'gadgets'],
  // Switches, buttons and fields.
  directions: ['directions', 'drive', 'ride', 'steer', 'walk'],
  amount: ['amount', 'sum', 'total', 'quantity', 'price'],
  share: ['share', 'pass', 'forward', 'export', 'hand'],
  freeze: ['freeze', 'block', 'lock', 'suspend', 'halt'],
  remind: ['remind', 'nudge', 'prompt', 'notify', 'alert'],
} as const;

export const ROOMS = ['bedroom', 'garage', 'garden'];
/** What every room has; one of them is also a thing of notes. */
export const APPLIANCES = ['lamp', 'heater', 'fan'];

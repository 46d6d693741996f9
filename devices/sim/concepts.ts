import { MORE_CONCEPTS } from './concepts-more.ts';

/**
 * What the simulated phone's interface talks about. A concept has five words; a skin shows one of them. The first is the
 * canonical word, which goals use. All words are distinct, so labels are unique on every screen.
 */
export const CORE_CONCEPTS = {
  // Apps.
  settings: ['settings', 'options', 'config', 'system', 'setup'],
  notes: ['notes', 'memos', 'notepad', 'jotter', 'journal'],
  messages: ['messages', 'chat', 'texts', 'talk', 'messenger'],
  contacts: ['contacts', 'people', 'phonebook', 'friends', 'directory'],
  clock: ['clock', 'alarms', 'timer', 'wakeup', 'watch'],
  shop: ['shop', 'store', 'market', 'mall', 'bazaar'],
  music: ['music', 'songs', 'tunes', 'audio', 'player'],
  mail: ['mail', 'email', 'letters', 'post', 'mailbox'],
  calendar: ['calendar', 'agenda', 'planner', 'schedule', 'dates'],
  weather: ['weather', 'forecast', 'climate', 'sky', 'meteo'],
  // Groups of settings.
  network: ['network', 'connections', 'internet', 'wireless', 'links'],
  display: ['display', 'screen', 'appearance', 'look', 'visuals'],
  sound: ['sound', 'sounds', 'noise', 'acoustics', 'tones'],
  privacy: ['privacy', 'permissions', 'security', 'protection', 'access'],
  // Switches.
  wifi: ['wifi', 'wlan', 'hotspots', 'router', 'lan'],
  bluetooth: ['bluetooth', 'pairing', 'wearables', 'headsets', 'bt'],
  airplane: ['airplane', 'flight', 'offline', 'aviation', 'flying'],
  tethering: ['tethering', 'sharing', 'modem', 'relay', 'bridge'],
  dark: ['dark', 'night', 'dim', 'black', 'shade'],
  rotation: ['rotation', 'rotate', 'orientation', 'turning', 'tilt'],
  vibration: ['vibration', 'haptics', 'buzz', 'shake', 'rumble'],
  silent: ['silent', 'mute', 'quiet', 'hush', 'soundless'],
  location: ['location', 'gps', 'position', 'whereabouts', 'geo'],
  camera: ['camera', 'lens', 'photos', 'imaging', 'shutter'],
  // Choices.
  brightness: ['brightness', 'light', 'backlight', 'glow', 'luminance'],
  volume: ['volume', 'loudness', 'level', 'gain', 'amplitude'],
  // Buttons and fields.
  back: ['back', 'return', 'previous', 'leave', 'exit'],
  create: ['new', 'plus', 'create', 'compose', 'start'],
  save: ['save', 'keep', 'retain', 'confirm', 'apply'],
  send: ['send', 'submit', 'deliver', 'transmit', 'dispatch'],
  remove: ['delete', 'remove', 'erase', 'trash', 'discard'],
  cart: ['cart', 'basket', 'bag', 'trolley', 'order'],
  add: ['add', 'include', 'put', 'insert', 'collect'],
  buy: ['buy', 'checkout', 'pay', 'purchase', 'acquire'],
  play: ['play', 'listen', 'run', 'hear', 'begin'],
  favourite: ['favourite', 'like', 'love', 'star', 'heart'],
  call: ['call', 'dial', 'ring', 'phone', 'reach'],
  find: ['find', 'lookup', 'explore', 'locate', 'seek'],
  later: ['later', 'dismiss', 'skip', 'notnow', 'ignore'],
  rate: ['rate', 'review', 'feedback', 'survey', 'opinion'],
  title: ['title', 'heading', 'subject', 'caption', 'topic'],
  name: ['name', 'person', 'fullname', 'who', 'identity'],
  number: ['number', 'digits', 'mobile', 'cell', 'telephone'],
  body: ['text', 'content', 'words', 'details', 'message'],
  to: ['to', 'recipient', 'addressee', 'receiver', 'target'],
  code: ['code', 'coupon', 'voucher', 'promo', 'token'],
  query: ['query', 'place', 'city', 'town', 'area'],
} as const;

/** All concepts: those of the core apps, then those of the others. */
export const CONCEPTS = { ...CORE_CONCEPTS, ...MORE_CONCEPTS } as const;
export type Concept = keyof typeof CONCEPTS;

/** Words that tasks put in and look for. */
export const NAMES = [
  'alice',
  'bruno',
  'chen',
  'dora',
  'emil',
  'farah',
  'gita',
  'hugo',
  'ines',
  'jonas',
  'kira',
  'luca',
];
export const SONGS = [
  'sunrise',
  'thunder',
  'velvet',
  'river',
  'comet',
  'ember',
  'lagoon',
  'mirage',
  'orbit',
  'prairie',
];
export const PRODUCTS = ['apples', 'bread', 'cheese', 'figs', 'eggs', 'flour', 'grapes', 'honey', 'juice', 'lemons'];
export const CITIES = ['paris', 'tokyo', 'cairo', 'lima', 'oslo', 'delhi', 'quito', 'rome', 'sofia', 'tunis'];
export const DAYS = ['monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday', 'sunday'];
export const HOURS = ['five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'noon', 'midnight'];
export const LEVELS = ['low', 'medium', 'high'];
export const VERBS = ['buy', 'bring', 'fetch', 'paint', 'clean', 'sell'];
export const THINGS = ['milk', 'chairs', 'boots', 'lamp', 'books', 'tent', 'rope', 'soap', 'globe', 'kite'];
export const EVENTS = ['lunch', 'dentist', 'concert', 'meeting', 'picnic', 'exam', 'haircut', 'yoga'];
export const DIGITS = ['5501', '5512', '5523', '5534', '5545', '5556'];
export const VOUCHERS = ['spring', 'summer', 'autumn', 'winter', 'harvest', 'festive'];
/** Things no phone has: what impossible tasks ask for. */
export const ABSENT = ['radar', 'sonar', 'zoe', 'wanda', 'xylophone', 'umbrellas', 'atlantis', 'gravity'];

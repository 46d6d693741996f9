/**
 * What runs inside the page. Kept as source text: it is compiled by the browser, not by us, and shares no scope with
 * Node. Everything it returns is plain data.
 */

/** Before any script of the page: a viewport as wide as the task, and one latch for the episode's first result. */
export const INIT_SCRIPT = `
(() => {
  const onReady = () => {
    const meta = document.createElement('meta');
    meta.name = 'viewport';
    meta.content = 'width=160, initial-scale=2.4375, user-scalable=no';
    document.head.appendChild(meta);
    const style = document.createElement('style');
    // The countdown is a clock and the click trail fades: neither may change the state's picture.
    style.textContent = '#reward-display, #click-canvas { display: none !important } * { transition: none !important; animation: none !important }';
    document.head.appendChild(style);
  };
  if (document.head) onReady(); else document.addEventListener('DOMContentLoaded', onReady);
})();
`;

/** Starts the episode for a seed. Resolves to the instruction. A page without the benchmark's core throws. */
export const START_SCRIPT = `
(async (seed) => {
  if (typeof core === 'undefined') throw new Error('the page is not a MiniWoB++ task');
  if (window.jQuery) window.jQuery.fx.off = true;
  window.__tapwright = { done: false, raw: 0 };
  const end = core.endEpisode;
  core.endEpisode = function (reward) {
    const live = core.EP_TIMER !== null;
    end.apply(core, arguments);
    if (live && !window.__tapwright.done) window.__tapwright = { done: true, raw: WOB_RAW_REWARD_GLOBAL };
  };
  core.EPISODE_MAX_TIME = 24 * 3600 * 1000;
  Math.seedrandom(String(seed));
  core.startEpisodeReal();
  for (let i = 0; i < 200 && !WOB_TASK_READY; i++) await new Promise((r) => setTimeout(r, 10));
  if (!WOB_TASK_READY) throw new Error('the task did not become ready');
  return core.getUtterance();
})`;

/** The visible elements in reading order, the result latch and the page scale. Boxes are in layout px. */
export const VIEW_SCRIPT = `
(() => {
  const state = window.__tapwright || { done: false, raw: 0 };
  const scale = window.visualViewport ? window.visualViewport.scale : 1;
  const clean = (text) => (text || '').split(/\\s+/).map((w) => w.replace(/^[^A-Za-z0-9]+|[^A-Za-z0-9]+$/g, '')).filter(Boolean).join(' ');
  const shown = (el) => {
    const r = el.getBoundingClientRect();
    if (r.width < 2 || r.height < 2 || r.bottom < 1 || r.right < 1 || r.top > window.innerHeight || r.left > window.innerWidth) return null;
    const s = getComputedStyle(el);
    if (s.visibility === 'hidden' || s.display === 'none') return null;
    // The first line of a wrapped inline element: the middle of its whole box may be another element.
    const first = el.getClientRects()[0] || r;
    return { x: first.left, y: first.top, width: first.width, height: first.height };
  };
  const out = [];
  const push = (role, label, el, extra) => {
    const box = shown(el);
    if (!box) return;
    out.push(Object.assign({ role, label, box, focused: document.activeElement === el }, extra || {}));
  };
  if (state.done) {
    const cover = document.getElementById('sync-task-cover');
    if (cover) push('button', 'START', cover);
    return { done: true, raw: state.raw, scale, elements: out };
  }
  const fieldLabel = (el) => {
    if (el.id) { const l = document.querySelector('label[for="' + el.id + '"]'); if (l) return clean(l.textContent); }
    const before = el.previousElementSibling;
    if (before && before.tagName === 'LABEL' && !before.querySelector('input')) return clean(before.textContent);
    return clean(el.placeholder) || 'field';
  };
  const roots = [...document.body.children].filter((el) => !['reward-display', 'click-canvas', 'sync-task-cover'].includes(el.id));
  for (const root of roots) {
    for (const el of root.querySelectorAll('button, input, textarea, select, a, .alink, h3.ui-accordion-header, label')) {
      if (el.closest('#query')) continue;
      const tag = el.tagName;
      if (tag === 'LABEL') {
        const input = el.querySelector('input');
        if (input) push(input.type === 'radio' ? 'radio' : 'checkbox', clean(el.textContent), el, { value: input.checked ? 'on' : 'off' });
      } else if (tag === 'INPUT' && (el.type === 'checkbox' || el.type === 'radio')) {
        if (!el.closest('label')) push(el.type, fieldLabel(el), el, { value: el.checked ? 'on' : 'off' });
      } else if (tag === 'INPUT' && (el.type === 'button' || el.type === 'submit')) {
        push('button', clean(el.value), el);
      } else if (tag === 'INPUT' || tag === 'TEXTAREA' || tag === 'SELECT') {
        push('field', fieldLabel(el), el, { value: el.value });
      } else if (tag === 'BUTTON') {
        const close = el.classList.contains('ui-dialog-titlebar-close');
        push('button', close ? 'x' : clean(el.textContent), el);
      } else if (tag === 'H3') {
        push('row', clean(el.textContent), el, { value: el.classList.contains('ui-accordion-header-active') ? 'on' : 'off' });
      } else if (el.classList.contains('ui-tabs-anchor')) {
        push('tab', clean(el.textContent), el);
      } else {
        push('link', clean(el.textContent), el);
      }
    }
  }
  return { done: false, raw: 0, scale, elements: out };
})()
`;

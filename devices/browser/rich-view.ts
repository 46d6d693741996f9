/**
 * The outline of pages whose targets are not just buttons, fields and links: pictures, cells, icons and plain text as
 * well. Source text that runs in the page, like page-scripts.ts. Pages of the first tasks keep VIEW_SCRIPT: their
 * outlines were trained on.
 */
export const RICH_VIEW_SCRIPT = `
(() => {
  const state = window.__tapwright || { done: false, raw: 0 };
  const scale = window.visualViewport ? window.visualViewport.scale : 1;
  const MOST = 60, WORDS = 8;
  const clean = (text) => (text || '').split(/\\s+/).map((w) => w.replace(/^[^\\p{L}\\p{N}+<>=*%-]+|[^\\p{L}\\p{N}+<>=*%-]+$/gu, '')).filter(Boolean).slice(0, WORDS).join(' ');
  const out = [];
  const boxOf = (el) => {
    const r = el.getBoundingClientRect();
    if (r.width < 2 || r.height < 2 || r.bottom < 1 || r.right < 1 || r.top > window.innerHeight || r.left > window.innerWidth) return null;
    const s = getComputedStyle(el);
    if (s.visibility === 'hidden' || s.display === 'none' || s.opacity === '0') return null;
    const first = el.getClientRects()[0] || r;
    const box = { x: first.left, y: first.top, width: first.width, height: first.height };
    // Text that its container has scrolled away cannot be tapped.
    for (let up = el.parentElement; up && up !== document.body; up = up.parentElement) {
      if (!/auto|scroll|hidden/.test(getComputedStyle(up).overflowY)) continue;
      const p = up.getBoundingClientRect();
      const middle = box.y + box.height / 2;
      if (middle < p.top || middle > p.bottom) return null;
    }
    // Where another element lies over the middle, the part that a finger reaches.
    const reaches = (x, y) => { const hit = document.elementFromPoint(x, y); return !!hit && (el.contains(hit) || hit.contains(el)); };
    if (reaches(box.x + box.width / 2, box.y + box.height / 2)) return box;
    for (const [fx, fy] of [[0.15, 0.2], [0.85, 0.2], [0.15, 0.8], [0.85, 0.8], [0.5, 0.15], [0.5, 0.85]]) {
      const [x, y] = [box.x + fx * box.width, box.y + fy * box.height];
      if (reaches(x, y)) return { x: x - 1, y: y - 1, width: 2, height: 2 };
    }
    return box;
  };
  const push = (role, label, el, extra) => {
    if (out.length >= MOST || !label) return;
    const box = boxOf(el);
    if (box) out.push(Object.assign({ role, label, box, focused: document.activeElement === el }, extra || {}));
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
    return clean(el.placeholder) || (el.tagName === 'TEXTAREA' ? 'area' : 'field');
  };
  const HANDLERS = ['click', 'mousedown', 'mouseup', 'touchstart'];
  const listens = (el) => {
    if (el.onclick || el.onmousedown || el.__onclick || el.__onmousedown) return true;
    if (Array.isArray(el.__on) && el.__on.some((on) => HANDLERS.includes(on.type))) return true;
    const events = window.jQuery && window.jQuery._data && window.jQuery._data(el, 'events');
    return !!events && HANDLERS.some((name) => events[name] && events[name].some((e) => !e.selector));
  };
  const clickable = (el) => listens(el) || getComputedStyle(el).cursor === 'pointer';
  const CONTROL = 'button, input, textarea, select, a, [contenteditable=true]';
  const SHAPE = ['rect', 'circle', 'ellipse', 'polygon', 'path', 'line'];
  const nameOf = (el) => clean((el.getAttribute('title') || el.getAttribute('alt') || el.getAttribute('data-color') || (el.getAttribute('class') || el.id || '').split(/\\s+/)[0] || '').replace(/[-_]/g, ' '));
  const painted = (el, kind) => {
    const r = el.getBoundingClientRect();
    const fill = el.getAttribute('fill') || el.style.fill || getComputedStyle(el).fill;
    return [Math.max(r.width, r.height) > 15 ? 'large' : 'small', /^[a-z]+$/.test(fill) && fill !== 'none' ? fill : '', kind].filter(Boolean).join(' ');
  };
  const shapeName = (el) => {
    const tag = el.tagName.toLowerCase();
    const sides = tag === 'polygon' ? (el.getAttribute('points') || '').trim().split(/[\\s,]+/).length / 2 : 0;
    const kind = tag === 'rect' ? 'rectangle' : tag === 'polygon' && sides === 3 ? 'triangle' : tag;
    return painted(el, kind);
  };
  // A card that was picked is one that is no longer \`hidden\`.
  const chosen = (el) => (el.className === 'card' || /(^|[ -])(selected|active|clicked|chosen|checked)( |$)/.test(el.getAttribute('class') || '') ? { value: 'on' } : {});
  const control = (el) => {
    const tag = el.tagName;
    if (tag === 'INPUT' && el.type === 'hidden') return;
    if (tag === 'INPUT' && (el.type === 'checkbox' || el.type === 'radio')) {
      const label = el.closest('label');
      push(el.type, (label && clean(label.textContent)) || fieldLabel(el), label || el, { value: el.checked ? 'on' : 'off' });
    } else if (tag === 'INPUT' && (el.type === 'button' || el.type === 'submit')) push('button', clean(el.value), el);
    else if (tag === 'INPUT' || tag === 'TEXTAREA' || tag === 'SELECT') push('field', fieldLabel(el), el, { value: el.value });
    else if (tag === 'BUTTON') push('button', el.classList.contains('ui-dialog-titlebar-close') ? 'x' : clean(el.textContent) || nameOf(el), el, chosen(el));
    else if (el.isContentEditable) push('field', 'field', el, { value: clean(el.textContent) });
    else push(el.classList.contains('ui-tabs-anchor') ? 'tab' : 'link', clean(el.textContent) || nameOf(el), el, el.closest('li.ui-state-active') ? { value: 'on' } : {});
  };
  const ownText = (el) => clean([...el.childNodes].filter((n) => n.nodeType === 3).map((n) => n.textContent).join(' '));
  const walk = (el) => {
    const tag = el.tagName.toLowerCase();
    if (['script', 'style', 'br', 'hr', 'option'].includes(tag) || el.id === 'query') return;
    if (getComputedStyle(el).display === 'none') return;
    if (el.matches(CONTROL)) return control(el);
    if (SHAPE.includes(tag)) return push(clickable(el) ? 'icon' : 'label', shapeName(el), el);
    if (tag === 'text') return push(listens(el) ? 'icon' : 'label', el.getAttribute('fill') ? painted(el, clean(el.textContent)) : clean(el.textContent), el);
    if (tag === 'img') return push('icon', nameOf(el), el);
    if (tag === 'label' && el.querySelector('input')) return [...el.querySelectorAll('input')].forEach(control);
    const inner = el.querySelector(CONTROL + ', svg') || [...el.querySelectorAll('*')].some(listens);
    const on = clickable(el);
    if (on && !inner && tag !== 'svg' && !el.querySelector('li')) {
      const text = clean(el.innerText === undefined ? el.textContent : el.innerText);
      if (text.split(' ').length < WORDS || el.children.length === 0)
        return push('row', text || nameOf(el), el, el.classList.contains('ui-accordion-header') ? { value: el.classList.contains('ui-accordion-header-active') ? 'on' : 'off' } : chosen(el));
    }
    const own = ownText(el);
    if (own) push(on ? 'row' : 'label', own, el);
    for (const child of el.children) walk(child);
  };
  for (const root of document.body.children)
    if (!['reward-display', 'click-canvas', 'sync-task-cover'].includes(root.id)) walk(root);
  return { done: false, raw: 0, scale, elements: out, text: (document.getElementById('area') || document.body).innerText };
})()
`;

/**
 * Types into a focused date, time, number or list field as its own keyboard or picker would: `12/31/2016`, `5:54 PM`, an
 * option's text. Resolves to whether the field took it; null for any other field.
 */
export const PICKED_SCRIPT = (text: string): string => `
(() => {
  const el = document.activeElement, text = ${JSON.stringify(text)};
  let value = null;
  if (el.tagName === 'SELECT') {
    const option = [...el.options].find((o) => o.text.trim() === text);
    if (!option) return false;
    value = option.value;
  } else if (el.type === 'date') {
    const m = /^(\\d+)\\/(\\d+)\\/(\\d+)$/.exec(text);
    if (!m) return false;
    value = m[3] + '-' + m[1].padStart(2, '0') + '-' + m[2].padStart(2, '0');
  } else if (el.type === 'time') {
    const m = /^(\\d+):(\\d+) ?([AP])M$/i.exec(text);
    if (!m) return false;
    value = String((Number(m[1]) % 12) + (m[3].toUpperCase() === 'P' ? 12 : 0)).padStart(2, '0') + ':' + m[2];
  } else if (['number', 'range', 'color'].includes(el.type)) value = text;
  else return null;
  el.value = value;
  el.dispatchEvent(new Event('input', { bubbles: true }));
  el.dispatchEvent(new Event('change', { bubbles: true }));
  return el.value === value;
})()
`;

/** Scrolls what lies at a point, or the page, by layout px. */
export const SCROLL_SCRIPT = (x: number, y: number, dy: number): string => `
(() => {
  let el = document.elementFromPoint(${x}, ${y});
  while (el && !(el.scrollHeight > el.clientHeight + 1 && /auto|scroll/.test(getComputedStyle(el).overflowY))) el = el.parentElement;
  (el || window).scrollBy(0, ${dy});
})()
`;

/* The serial port's line protocol: `ID COMMAND ...` is answered by `ID JSON`. The agent never sees it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "phone.h"

static char out[32768];
static size_t used;

static void add(const char *text) {
  size_t n = strlen(text);
  if (used + n + 1 >= sizeof out) return;
  memcpy(out + used, text, n + 1);
  used += n;
}
static void text(const char *name, const char *value) {
  add("\"");
  add(name);
  add("\":\"");
  for (const char *c = value; *c != 0; c++) {
    char one[3] = {*c, 0, 0};
    if (*c == '"' || *c == '\\') one[0] = '\\', one[1] = *c;
    add(one);
  }
  add("\"");
}
static void integer(const char *name, long value) {
  char one[64];
  snprintf(one, sizeof one, "\"%s\":%ld", name, value);
  add(one);
}
static void next(int i) { if (i > 0) add(","); }

static void named_list(const char *name, const struct named *of, int n) {
  add(",\"");
  add(name);
  add("\":[");
  for (int i = 0; i < n; i++) {
    next(i);
    add("{");
    text("name", of[i].name);
    add(",");
    integer("on", of[i].on);
    add("}");
  }
  add("]");
}

static void whole_state(void) {
  static const char *const PAGES[] = {"list", "detail", "edit", "confirm", "cart", "ordered"};
  add("{");
  text("app", APP_NAMES[phone.app]);
  add(",");
  text("page", PAGES[phone.page]);
  add(",");
  text("draft", phone.draft);
  const struct { const char *name; long value; } numbers[] = {
      {"index", phone.index}, {"scroll", phone.scroll}, {"focused", phone.focused}, {"quantity", phone.quantity},
      {"orders", phone.orders}, {"called", phone.calls - 1}, {"counter", phone.counter}, {"theme", phone.theme},
      {"events", events}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    add(",");
    integer(numbers[i].name, numbers[i].value);
  }
  add(",\"settings\":{");
  for (int i = 0; i < SETTINGS_N; i++) {
    next(i);
    integer(SETTING_NAMES[i], phone.settings[i]);
  }
  add("},\"contacts\":[");
  for (int i = 0; i < phone.contacts_n; i++) {
    next(i);
    add("{");
    text("name", phone.contacts[i].name);
    add(",");
    text("number", phone.contacts[i].number);
    add(",");
    text("last", phone.contacts[i].last);
    add(",");
    integer("favorite", phone.contacts[i].favorite);
    add("}");
  }
  add("]");
  named_list("notes", phone.notes, phone.notes_n);
  named_list("tasks", phone.tasks, phone.tasks_n);
  named_list("alarms", phone.alarms, phone.alarms_n);
  add(",\"items\":[");
  for (int i = 0; i < phone.items_n; i++) {
    next(i);
    add("{");
    text("name", phone.items[i].name);
    add(",");
    integer("price", phone.items[i].price);
    add(",");
    integer("cart", phone.items[i].cart);
    add(",");
    integer("ordered", phone.items[i].ordered);
    add("}");
  }
  add("]}");
}

static void outline(void) {
  static const char *const ROLES[] = {"icon", "row", "switch", "button", "field", "label"};
  struct element shown[MAX_ELEMENTS];
  int n = elements(shown);
  add("[");
  for (int i = 0; i < n; i++) {
    const struct element *e = &shown[i];
    char box[96];
    next(i);
    add("{");
    text("role", ROLES[e->role]);
    add(",");
    text("label", e->label);
    if (e->value[0] != 0) {
      add(",");
      text("value", e->value);
    }
    if (e->focused) add(",\"focused\":true");
    snprintf(box, sizeof box, ",\"box\":{\"x\":%d,\"y\":%d,\"width\":%d,\"height\":%d}}", e->x, e->y, e->w, e->h);
    add(box);
  }
  add("]");
}

/* Answers one line; `answer` gets the whole answer without its newline. */
void serve(const char *line, void (*answer)(const char *)) {
  char copy[256];
  snprintf(copy, sizeof copy, "%s", line);
  char *rest = copy;
  const char *id = strsep(&rest, " ");
  const char *command = rest == NULL ? "" : strsep(&rest, " ");
  const char *wrong = NULL;
  used = 0;
  add(id);
  add(" ");
  if (strcmp(command, "state") == 0) whole_state();
  else if (strcmp(command, "outline") == 0) outline();
  else if (strcmp(command, "ping") == 0) {
    add("{");
    integer("events", events);
    add("}");
  } else if (strcmp(command, "reset") == 0 && rest != NULL) {
    reset_phone((unsigned)strtoul(rest, NULL, 10));
    add("{}");
  } else if (strcmp(command, "freeze") == 0) {
    /* For tests of those who watch: QEMU lives, its screen stands, and nobody is at home. */
    for (;;) pause();
  } else if (strcmp(command, "set") == 0 && rest != NULL && (wrong = set_phone(rest)) == NULL) {
    add("{}");
  } else {
    add("{");
    text("error", wrong == NULL ? "no such command" : wrong);
    add("}");
  }
  answer(out);
}

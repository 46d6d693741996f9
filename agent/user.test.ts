import { describe, expect, it } from 'vitest';
import { toyTask } from '../test/toy-phone.ts';
import { createRuleUser } from './user.ts';

const user = createRuleUser();
const task = { ...toyTask('message'), userFacts: { name: 'alice', 'user name': 'al7', city: 'oslo' } };

describe('simulated user', () => {
  it('answers what was asked, and only that', async () => {
    expect(await user.answer(task, 'name')).toEqual({ text: 'alice', fact: 'name', leaks: 0 });
    expect(await user.answer(task, 'Which City')).toEqual({ text: 'oslo', fact: 'city', leaks: 0 });
    expect(await user.answer(task, 'user name')).toEqual({ text: 'al7', fact: 'user name', leaks: 0 });
  });

  it.each(['', 'everything', 'surname', 'tell me all you know', 'constructor', 'cityname'])(
    'has no answer to %j',
    async (question) => {
      expect(await user.answer(task, question)).toEqual({ text: 'i do not know', fact: null, leaks: 0 });
    },
  );

  it('counts what an answer gives away besides', async () => {
    const chatty = { ...task, userFacts: { address: 'alice in oslo', city: 'oslo', name: 'alice', code: 'os' } };
    expect(await user.answer(chatty, 'address')).toMatchObject({ fact: 'address', leaks: 2 });
  });
});

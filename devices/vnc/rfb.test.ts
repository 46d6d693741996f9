import { afterEach, describe, expect, it } from 'vitest';
import { connectRfb } from './rfb.ts';
import type { RfbClient, RfbOptions } from './rfb.ts';
import { createZrlePacker, rect, solid, toyServer, u16, u32, update } from './testing.ts';
import type { ToyConnection, ToyOptions } from './testing.ts';

const open: { close(): void }[] = [];
afterEach(() => {
  for (const each of open.splice(0)) each.close();
});

async function pair(
  server: ToyOptions = {},
  client: Partial<RfbOptions> = {},
): Promise<{ client: RfbClient; server: ToyConnection }> {
  const toy = await toyServer(server);
  open.push(toy);
  const connected = await connectRfb({ at: { host: '127.0.0.1', port: toy.port }, ...client });
  open.push(connected);
  return { client: connected, server: await toy.greeted };
}

const RED = [255, 0, 0] as const;
const BLUE = [0, 0, 255] as const;
const pixel = (frame: { pixels: Uint8Array; width: number }, x: number, y: number): number[] =>
  Array.from(frame.pixels.subarray((y * frame.width + x) * 4, (y * frame.width + x) * 4 + 4));

describe('connecting', () => {
  it.each(['003.003', '003.007', '003.008', '003.889', '004.001'])('greets RFB %s', async (version) => {
    const { client } = await pair({ version });
    expect([client.width, client.height, client.name]).toEqual([64, 48, 'toy']);
  });

  it.each(['003.003', '003.008'])('answers the challenge of VncAuth in RFB %s', async (version) => {
    const { client } = await pair({ version, password: 'secret' }, { password: 'secret' });
    expect(client.name).toBe('toy');
  });

  it('says what is wrong: the password, none, a refusal, no VNC server, nobody there, silence', async () => {
    await expect(pair({ password: 'secret' }, { password: 'other' })).rejects.toMatchObject({
      code: 'invalid_config',
      message: expect.stringContaining('refused the password: wrong password') as string,
    });
    await expect(pair({ password: 'secret' })).rejects.toMatchObject({ code: 'invalid_config' });
    await expect(pair({ refuse: 'too many' })).rejects.toThrow('refused the connection: too many');
    await expect(pair({ version: 'abc.def' })).rejects.toThrow('is no VNC server');
    const gone = await toyServer();
    gone.close();
    await expect(connectRfb({ at: { host: '127.0.0.1', port: gone.port } })).rejects.toMatchObject({
      code: 'connection_dropped',
    });
    await expect(pair({ version: '00' }, { connectTimeoutMs: 50 })).rejects.toThrow('did not greet within 50 ms');
  });
});

describe('the screen', () => {
  it('follows raw, copied and ZRLE rectangles, and counts what was drawn', async () => {
    const { client, server } = await pair();
    await server.whenReceived(3, 1);
    expect(server.received[2]!.body[0]).toBe(0);
    server.send(update(solid([0, 0, 64, 48], RED)));
    const first = await client.observe({ timeout: 2_000 });
    expect(first.sequence).toBe(0);
    expect(pixel(first, 63, 47)).toEqual([255, 0, 0, 255]);
    // Asked again, for changes only, without being told to.
    await server.whenReceived(3, 2);
    expect(server.received.at(-1)!.body[0]).toBe(1);
    server.send(update(solid([10, 10, 2, 2], BLUE), rect([11, 11, 2, 2], 1, Buffer.concat([u16(10), u16(10)]))));
    const second = await client.observe({ newerThan: first.sequence, timeout: 2_000 });
    expect(second.sequence).toBe(1);
    expect(pixel(second, 12, 12)).toEqual([0, 0, 255, 255]);
    expect(pixel(first, 12, 12)).toEqual([255, 0, 0, 255]);

    const pack = createZrlePacker();
    // A palette of two in rows of bits, then a run through a palette, each in the one stream of the connection.
    const rows = Buffer.concat([Buffer.of(2, 1, 2, 3, 4, 5, 6), Buffer.of(0b10100000, 0b01000000)]);
    const runs = Buffer.of(130, 9, 9, 9, 7, 7, 7, 128, 2, 1, 128, 0, 1);
    server.send(update(rect([0, 0, 3, 2], 16, await pack(rows)), rect([0, 10, 3, 2], 16, await pack(runs))));
    const third = await client.observe({ newerThan: second.sequence, timeout: 2_000 });
    expect([0, 1, 2].map((x) => pixel(third, x, 0)[0])).toEqual([4, 1, 4]);
    expect([0, 1, 2].map((x) => pixel(third, x, 1)[0])).toEqual([1, 4, 1]);
    expect([0, 1, 2].map((x) => pixel(third, x, 10)[0])).toEqual([9, 9, 9]);
    expect([0, 1, 2].map((x) => pixel(third, x, 11)[0])).toEqual([7, 9, 7]);
  });

  it('is asked for anew when a whole frame was answered with a size alone, and takes the new size', async () => {
    const { client, server } = await pair();
    await server.whenReceived(3, 1);
    server.send(update(rect([0, 0, 20, 10], -308, Buffer.concat([Buffer.of(1, 0, 0, 0), Buffer.alloc(16)]))));
    await server.whenReceived(3, 2);
    const again = server.received.at(-1)!.body;
    expect([again[0], again.readUInt16BE(5), again.readUInt16BE(7)]).toEqual([0, 20, 10]);
    server.send(update(solid([0, 0, 20, 10], BLUE)));
    const frame = await client.observe({ timeout: 2_000 });
    expect([frame.width, frame.height, frame.pixels.length]).toEqual([20, 10, 800]);
  });

  it('is had from a server that answers a full request with a notice, and only then with pixels', async () => {
    const { client, server } = await pair();
    const kinds = (): number[] => server.received.filter((m) => m.type === 3).map(({ body }) => body[0]!);
    await server.whenReceived(3, 1);
    server.send(update(rect([0, 0, 64, 48], -308, Buffer.concat([Buffer.of(1, 0, 0, 0), Buffer.alloc(16)]))));
    await server.whenReceived(3, 2);
    server.send(update(solid([0, 0, 64, 48], RED)));
    expect((await client.observe({ timeout: 2_000 })).sequence).toBe(0);
    // A cursor, later, is no reason to ask for everything.
    server.send(update(rect([0, 0, 0, 0], -239)));
    await server.whenReceived(3, 4);
    expect(kinds()).toEqual([0, 1, 1, 1]);
  });

  it('waits until it holds still, and says when there is nothing new or no rest', async () => {
    const { client, server } = await pair();
    server.send(update(solid([0, 0, 64, 48], RED)));
    await client.observe({ timeout: 2_000 });
    await expect(client.observe({ newerThan: 0, timeout: 40 })).rejects.toMatchObject({
      code: 'frame_stale',
      message: expect.stringContaining('nothing new') as string,
    });
    for (const color of [1, 2, 3]) server.send(update(solid([0, 0, 1, 1], [color, 0, 0])));
    await client.observe({ newerThan: 2, timeout: 2_000 });
    // It changed a moment ago: longer than that it has not been still, whatever the machine does meanwhile.
    await expect(client.observe({ stableFor: 600_000, timeout: 20 })).rejects.toThrow('did not hold still');
    const last = await client.observe({ stableFor: 30, timeout: 5_000 });
    expect(pixel(last, 0, 0)[0]).toBe(3);
    await expect(client.refresh(40)).rejects.toThrow('sent no whole frame');
    const whole = client.refresh(2_000);
    server.send(update(solid([0, 0, 64, 48], BLUE)));
    expect(pixel(await whole, 5, 5)).toEqual([0, 0, 255, 255]);
  });

  it('ends with the connection, whoever waits', async () => {
    const { client, server } = await pair();
    const waiting = client.observe({ timeout: 5_000 });
    server.socket.destroy();
    await expect(waiting).rejects.toMatchObject({ code: 'connection_dropped' });
    await expect(client.tap({ x: 1, y: 1 })).rejects.toMatchObject({ code: 'connection_dropped' });
  });
});

describe('input', () => {
  it('taps, swipes through points between, and lifts what is held', async () => {
    const { client, server } = await pair();
    const events = (): number[][] =>
      server.received
        .filter((m) => m.type === 5)
        .map(({ body }) => [body[0]!, body.readUInt16BE(1), body.readUInt16BE(3)]);
    await client.tap({ x: 10.4, y: 900 });
    await server.whenReceived(5, 3);
    expect(events()).toEqual([
      [0, 10, 47],
      [1, 10, 47],
      [0, 10, 47],
    ]);
    await client.swipe({ x: 0, y: 40 }, { x: 0, y: 0 }, 20);
    await server.whenReceived(5, 15);
    expect(
      events()
        .slice(4, 14)
        .map(([, , y]) => y),
    ).toEqual([40, 36, 32, 28, 24, 20, 16, 12, 8, 4]);
    const holding = client.longPress({ x: 5, y: 5 }, 100);
    await server.whenReceived(5, 18);
    client.lift();
    await server.whenReceived(5, 19);
    expect(events().at(-1)).toEqual([0, 5, 5]);
    await holding;
    // A swipe that is lifted on its way stays lifted.
    const before = events().length;
    const swiping = client.swipe({ x: 0, y: 0 }, { x: 40, y: 0 }, 400);
    await server.whenReceived(5, before + 3);
    client.lift();
    await swiping;
    await client.tap({ x: 9, y: 9 });
    // What comes last has everything before it.
    client.clipboard('end');
    await server.whenReceived(6, 1);
    const after = events().slice(before);
    const lifted = after.findIndex(([buttons], k) => k > 1 && buttons === 0);
    expect(after.slice(lifted)).toEqual([after[lifted], [0, 9, 9], [1, 9, 9], [0, 9, 9]]);
  });

  it('types with shift, with scancodes when the server takes them, and refuses what has no key', async () => {
    const { client, server } = await pair();
    expect(await client.type('aé')).toBe(false);
    expect(await client.type('A')).toBe(true);
    await server.whenReceived(4, 4);
    const plain = server.received.filter((m) => m.type === 4).map(({ body }) => [body[0], body.readUInt32BE(3)]);
    expect(plain).toEqual([
      [1, 0xffe1],
      [1, 65],
      [0, 65],
      [0, 0xffe1],
    ]);
    server.send(update(rect([0, 0, 0, 0], -258)));
    await server.whenReceived(3, 2);
    await client.press('enter');
    await server.whenReceived(255, 2);
    const extended = server.received.find((m) => m.type === 255)!.body;
    expect([extended.readUInt16BE(1), extended.readUInt32BE(3), extended.readUInt32BE(7)]).toEqual([1, 0xff0d, 0x1c]);
  });

  it('puts Latin-1 on the clipboard and refuses any other text', async () => {
    const { client, server } = await pair();
    expect(client.clipboard('héllo %s $')).toBe(true);
    expect(client.clipboard('😀')).toBe(false);
    await server.whenReceived(6, 1);
    expect(
      server.received
        .find((m) => m.type === 6)!
        .body.subarray(7)
        .toString('latin1'),
    ).toBe('héllo %s $');
  });
});

describe('hostile servers', () => {
  it.each([
    ['a rectangle outside of the screen', update(rect([60, 0, 10, 1], 0, Buffer.alloc(40))), 'outside of its screen'],
    ['a copy from outside', update(rect([0, 0, 4, 4], 1, Buffer.concat([u16(62), u16(0)]))), 'outside of its screen'],
    ['a huge size', update(rect([0, 0, 60_000, 60_000], -223)), 'announced a screen of'],
    ['packed data without end', update(rect([0, 0, 8, 8], 16, u32(0xffffffff))), 'packed bytes for 64 pixels'],
    ['packed data that is none', update(rect([0, 0, 8, 8], 16, Buffer.concat([u32(4), u32(7)]))), 'damaged ZRLE'],
    ['a huge cursor', update(rect([0, 0, 9_000, 9_000], -239)), 'a cursor of'],
    ['a huge clipboard', Buffer.concat([Buffer.of(3, 0, 0, 0), u32(0x7fffffff)]), 'bytes of clipboard'],
    ['an encoding that was not offered', update(rect([0, 0, 1, 1], 7)), 'in encoding 7'],
    ['an unknown message', Buffer.of(99), 'the unknown type 99'],
    [
      'a size that is set again and again',
      update(...Array.from({ length: 100 }, (_, i) => rect([0, 0, 60 + (i % 2), 48], -223))),
      'over and over',
    ],
    [
      'a copy of everything, again and again',
      update(...Array.from({ length: 100 }, () => rect([0, 0, 64, 48], 1, Buffer.concat([u16(0), u16(0)])))),
      'over and over',
    ],
  ])('are dropped for %s', async (_what, bytes, words) => {
    const { client, server } = await pair();
    server.send(bytes);
    await expect(client.observe({ timeout: 2_000 })).rejects.toMatchObject({
      code: 'connection_dropped',
      message: expect.stringContaining(words) as string,
    });
  });

  it('cannot make a rectangle unpack to more than it can need', async () => {
    const { client, server } = await pair();
    const bomb = await createZrlePacker()(Buffer.alloc(8_000_000));
    server.send(update(rect([0, 0, 64, 48], 16, bomb)));
    await expect(client.observe({ timeout: 5_000 })).rejects.toThrow('unpacks to more than');
  });
});

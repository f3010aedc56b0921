// memjs against a server, in the binary protocol: `node main.js ADDRESS`. It ends at the first wrong answer, saying which.
'use strict';

const assert = require('node:assert');
const memjs = require('memjs');

const quiet = { log() {} };
const client = memjs.Client.create(process.argv[2], { logger: quiet, retries: 0, timeout: 10 });
let checks = 0;

function check(what, got, wanted) {
  assert.deepStrictEqual(got, wanted, `${what}: ${got} instead of ${wanted}`);
  checks++;
}

async function value(key) {
  return (await client.get(key)).value;
}

async function fails(what, promise, message) {
  const error = await promise.then(() => null, (error) => error);
  check(what, error && error.message, message);
}

function statistics(section) {
  return new Promise((resolve, reject) => {
    client.statsWithKey(section, (error, _server, all) => (error ? reject(error) : resolve(all)));
  });
}

async function expires(key) {
  for (const deadline = Date.now() + 10_000; (await value(key)) !== null && Date.now() < deadline;) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  check('get of what has expired', await value(key), null);
}

async function main() {
  check('flush', await new Promise((resolve) => client.flush((_error, results) => resolve(Object.values(results)))), [true]);
  check('get of what is absent', await value('absent'), null);
  check('set', await client.set('key', 'value', {}), true);
  check('get', (await value('key')).toString(), 'value');
  check('add of what is there', await client.add('key', 'x', {}), false);
  check('add', await client.add('a', '1', {}), true);
  check('replace of what is absent', await client.replace('absent', 'x', {}), false);
  check('replace', await client.replace('a', '11', {}), true);
  check('append', await client.append('a', '>'), true);
  check('prepend', await client.prepend('a', '<'), true);
  await fails('append to what is absent', client.append('absent', '>'), 'MemJS APPEND: Item not stored');
  // Its prepend sends the opcode of append.
  check('joined', (await value('a')).toString(), '11><');

  check('increment of what is absent', (await client.increment('n', 3, { initial: 9 })).value, 9);
  check('increment', (await client.increment('n', 3, {})).value, 12);
  check('decrement', (await client.decrement('n', 100, {})).value, 0);
  await fails('increment of text', client.increment('key', 1, {}), 'MemJS INCREMENT: Incr/Decr on non-numeric value');

  check('touch', await client.touch('key', 100), true);
  check('touch of what is absent', await client.touch('absent', 100), false);
  check('set for a second', await client.set('brief', 'x', { expires: 1 }), true);
  await expires('brief');
  check('delete', await client.delete('a'), true);
  check('delete again', await client.delete('a'), false);

  const binary = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const large = Buffer.alloc(1_024_000, binary);
  for (const [key, stored] of [['binary', binary], ['large', large], ['empty', Buffer.alloc(0)], ['ключ 🗝', Buffer.from('naïve 鍵')]]) {
    check(`set of ${key}`, await client.set(key, stored, {}), true);
    check(`${key} comes back`, (await value(key)).equals(stored), true);
  }
  await fails('set of what is too large', client.set('large', Buffer.alloc(1_075_200), {}), 'MemJS SET: Value too large');
  check('get of what was refused', await value('large'), null);

  const keys = Array.from({ length: 1000 }, (_, number) => `many.${number}`);
  const stored = await Promise.all(keys.map((key) => client.set(key, key, {})));
  check('a thousand sets at once', stored.every((answer) => answer === true), true);
  const read = await Promise.all(keys.map(value));
  check('a thousand gets at once', read.map(String), keys);

  check('stats', Number((await statistics('')).curr_items) > 1000, true);
  check('stats settings', (await statistics('settings')).maxbytes, String(64 << 20));
  await new Promise((resolve) => client.flush(resolve));
  check('get after flush', await value('key'), null);
  client.close();
  console.log(`${checks} answers were right`);
}

main().catch((error) => {
  console.log(error.message);
  process.exit(1);
});

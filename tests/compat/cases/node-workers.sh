# SPDX-License-Identifier: Apache-2.0
# title: node runs worker threads and child processes and watches files
# needs: node
cat > main.js <<'JS'
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');
const { spawn, fork, execFileSync, exec } = require('child_process');
const fs = require('fs'), os = require('os'), net = require('net'), http = require('http'), crypto = require('crypto'), zlib = require('zlib');
if (!isMainThread) { const a = new Int32Array(workerData.buf); Atomics.add(a, 0, workerData.n); parentPort.postMessage(workerData.n * 2); return; }
if (process.argv[2] === 'child') { process.on('message', m => { process.send(m + '!'); process.disconnect(); }); return; }
(async () => {
  const buf = new SharedArrayBuffer(4);
  const r = await Promise.all([1, 2, 3, 4].map(n => new Promise((ok, no) => new Worker(__filename, { workerData: { n, buf } }).on('message', ok).on('error', no))));
  console.log(r, new Int32Array(buf)[0]);
  console.log(execFileSync('sh', ['-c', 'echo from sh']).toString().trim());
  console.log(await new Promise(ok => { const c = fork(__filename, ['child']); c.on('message', ok); c.send('ipc'); }));
  console.log(await new Promise(ok => { const c = spawn('cat'); let s = ''; c.stdout.on('data', d => s += d); c.on('close', k => ok([s, k])); c.stdin.end('through cat'); }));
  fs.mkdirSync('watched');
  console.log(await new Promise((ok, no) => { const w = fs.watch('watched', (e, f) => { w.close(); clearTimeout(t); ok([e, f]); }); const t = setTimeout(() => no('no event'), 5000); setTimeout(() => fs.writeFileSync('watched/x', 'y'), 50); }));
  await fs.promises.writeFile('big', Buffer.alloc(1 << 20, 1)); console.log((await fs.promises.stat('big')).size);
  console.log(await new Promise(ok => { const s = http.createServer((q, p) => p.end('served ' + q.url)).listen(0, '127.0.0.1', () => http.get({ port: s.address().port, host: '127.0.0.1', path: '/x' }, p => { p.on('data', d => { s.close(); ok(d.toString()); }); })); }));
  console.log(await new Promise(ok => { const s = net.createServer(c => c.end('unix')).listen('sock', () => net.connect('sock').on('data', d => { s.close(); ok(d.toString()); })); }));
  console.log(crypto.scryptSync('a', 'b', 16).toString('hex'), zlib.gunzipSync(zlib.gzipSync('zip')).toString(), crypto.randomBytes(8).length);
  console.log(os.cpus().length > 0, os.totalmem() > 0, os.freemem() > 0, os.uptime() > 0, os.tmpdir(), os.EOL === '\n', os.loadavg().length);
  console.log(new Intl.DateTimeFormat().resolvedOptions().timeZone, process.memoryUsage().rss > 0, process.resourceUsage().maxRSS > 0);
  const w = await WebAssembly.instantiate(Uint8Array.from([0,97,115,109,1,0,0,0,1,5,1,96,0,1,127,3,2,1,0,7,5,1,1,102,0,0,10,6,1,4,0,65,42,11])); console.log(w.instance.exports.f());
})().catch(e => { console.error(e); process.exit(1); });
JS
node main.js

// SPDX-License-Identifier: Apache-2.0
// HTTP/2 for tests: `server PORT DIR` in the world, `client HOST PORT REQUESTS` inside.
'use strict';
const http2 = require('http2');
const fs = require('fs');

function server(port, dir) {
  const pem = fs.readFileSync(dir + '/server.pem');
  const s = http2.createSecureServer({ key: pem, cert: pem });
  s.on('stream', (stream, h) => {
    let body = '';
    stream.on('error', () => {});
    stream.on('data', (d) => { body += d.toString('latin1'); });
    stream.on('end', () => {
      const said = { at: 'h2', port, tls: true, method: h[':method'], path: h[':path'], authority: h[':authority'], headers: Object.entries(h), body: body.slice(0, 4096) };
      fs.appendFileSync(process.env.CS_WORLD_LOG + '.http', JSON.stringify(said) + '\n');
      const back = { ':status': 200, 'x-seen': String(h.authorization || '') };
      if (h[':path'].startsWith('/gzip')) back['content-encoding'] = 'gzip';
      if (stream.destroyed) return;
      stream.respond(back);
      stream.end(h[':path'].startsWith('/gzip') ? require('zlib').gzipSync(JSON.stringify(h)) : JSON.stringify(h) + '\n');
    });
  });
  s.on('sessionError', () => {});
  s.listen(port, '::');
}

// All on one connection, one after another; each answer is [status or error, headers, body].
async function client(host, port, requests) {
  const c = http2.connect(`https://${host}:${port}`, { rejectUnauthorized: false });
  const answers = [];
  let broken = null;
  c.on('error', (e) => { broken = String(e.code || e); });
  c.on('goaway', () => { broken = broken || 'goaway'; });
  const one = (h, body) => new Promise((done) => {
    let s;
    const timer = setTimeout(() => done(['timeout']), 5000);
    const end = (a) => { clearTimeout(timer); done(a); };
    try {
      s = c.request(h, { endStream: !body });
    } catch (e) {
      return end([String(e.code)]);
    }
    let head = {}, text = '';
    s.on('response', (r) => { head = r; });
    s.on('data', (d) => { text += d.toString('latin1'); });
    s.on('error', (e) => end([String(e.code)]));
    s.on('close', () => end([head[':status'] || broken || 'closed', Object.fromEntries(Object.entries(head)), text]));
    if (body) s.end(body);
  });
  for (const [h, body] of requests) answers.push(await one(h, body));
  console.log('\x02' + JSON.stringify({ answers, alpn: c.alpnProtocol }));
  c.destroy();
}

const [what, ...rest] = process.argv.slice(2);
if (what === 'server') server(Number(rest[0]), rest[1]);
else client(rest[0], Number(rest[1]), JSON.parse(rest[2].replaceAll('$TOKEN_S', process.env.TOKEN_S || '')));

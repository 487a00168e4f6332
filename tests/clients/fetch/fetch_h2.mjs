// SPDX-License-Identifier: Apache-2.0
// fetch_h2.mjs URL: by HTTP/2, three requests at once on one connection; the protocol, the statuses, then the body.
import http2 from "node:http2";

const url = new URL(process.argv[2]);
const session = http2.connect(url.origin);
const get = () =>
  new Promise((resolve, reject) => {
    const s = session.request({ ":path": url.pathname });
    let status, body = "";
    s.setEncoding("utf8");
    s.on("response", (h) => (status = h[":status"]));
    s.on("data", (d) => (body += d));
    s.on("end", () => resolve({ status, body }));
    s.on("error", reject);
  });
session.on("error", (e) => {
  console.error(`${e}`);
  process.exit(1);
});
const all = await Promise.all([get(), get(), get()]);
console.log(`${session.alpnProtocol} ${all.map((a) => a.status).join(",")}`);
process.stdout.write(all[0].body);
process.exitCode = all.every((a) => a.status === 200 && a.body === all[0].body) ? 0 : 1;
session.close();

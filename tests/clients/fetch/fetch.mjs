// SPDX-License-Identifier: Apache-2.0
// fetch.mjs URL: the status, then the body.
try {
  const r = await fetch(process.argv[2]);
  console.log(`${r.status} ${r.headers.get("x-seen") ?? ""}`);
  process.stdout.write(await r.text());
  process.exitCode = r.ok ? 0 : 1;
} catch (e) {
  console.error(`${e}${e.cause ? ` <- ${e.cause}` : ""}`);
  process.exitCode = 1;
}

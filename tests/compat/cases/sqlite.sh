# SPDX-License-Identifier: Apache-2.0
# title: sqlite keeps a database, with a journal and with WAL
# needs: python3
cat > db.py <<'PY'
import sqlite3, threading, os
for mode in ("DELETE", "WAL"):
    name = f"{mode}.db"
    db = sqlite3.connect(name)
    print(db.execute(f"pragma journal_mode={mode}").fetchone())
    db.execute("create table t (k integer primary key, v text)")
    db.executemany("insert into t values (?, ?)", ((i, str(i)) for i in range(5000))); db.commit()
    def work(n):
        c = sqlite3.connect(name, timeout=30)
        for i in range(20):
            c.execute("update t set v = v || 'x' where k = ?", (n * 20 + i,)); c.commit()
    ts = [threading.Thread(target=work, args=(n,)) for n in range(4)]; [t.start() for t in ts]; [t.join() for t in ts]
    print(db.execute("select count(*), sum(length(v)) from t").fetchone(), db.execute("pragma integrity_check").fetchone())
    try:
        with db: db.execute("delete from t"); raise RuntimeError
    except RuntimeError: print(db.execute("select count(*) from t").fetchone())
    db.execute("vacuum"); db.close()
PY
python3 db.py
if [ -x /usr/bin/sqlite3 ]; then
	sqlite3 cli.db 'create table a(x); insert into a values (1),(2),(3); select sum(x) from a;'
	sqlite3 WAL.db '.schema' 'select count(*) from t'
fi

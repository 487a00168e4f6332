# SPDX-License-Identifier: Apache-2.0
# title: npm runs scripts and installs a package from a directory
# needs: node npm
# timeout: 90
mkdir dep app
echo '{"name":"dep","version":"1.0.0","main":"i.js","bin":{"depcmd":"cmd.js"}}' > dep/package.json
echo 'module.exports = 41;' > dep/i.js; printf '#!/usr/bin/env node\nconsole.log("from bin")\n' > dep/cmd.js; chmod +x dep/cmd.js
cd app
echo '{"name":"app","version":"1.0.0","scripts":{"pretest":"echo before","test":"node t.js && depcmd","fail":"exit 3"},"dependencies":{"dep":"file:../dep"}}' > package.json
echo 'console.log(require("dep") + 1)' > t.js
export npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
npm install --offline --silent; echo "install $?"
npm test --silent; npm run --silent fail; echo "fail $?"
ls -A node_modules | sort

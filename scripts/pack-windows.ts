import { parseArgs } from "node:util";
import { runCommand } from "./command-line.ts";
import { packForWindows } from "./wine/pack.ts";

await runCommand({
  name: "pack:windows",
  usage: "npm run pack:windows -- FOLDER\n  Put what deploy/windows/Dockerfile copies into a folder.",
  read: (args) => {
    const [folder, ...more] = parseArgs({ args: [...args], allowPositionals: true, options: {} }).positionals;
    if (folder === undefined || more.length > 0) throw new RangeError("say one folder");
    return folder;
  },
  execute: packForWindows,
});

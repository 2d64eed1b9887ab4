import { packForWindows } from "./wine/pack.ts";

// `npm run pack:windows -- FOLDER`: what deploy/windows/Dockerfile copies.
const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error("say where: npm run pack:windows -- FOLDER");
await packForWindows(folder);

/** The process that accepts an API server's clients in a network namespace, and hands their connections to its parent. */
import { createServer } from "node:net";

const [host = "", port = ""] = process.argv.slice(2);
createServer({ pauseOnConnect: true }, (socket) => process.send?.("client", socket)).listen(Number(port), host, () =>
  process.send?.("open"),
);
process.on("disconnect", () => process.exit(0));

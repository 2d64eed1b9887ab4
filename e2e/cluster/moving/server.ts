// Runs in a pod, by Node alone: answers what it is sent, on every connection.
import { createServer } from "node:net";

const server = createServer((socket) => socket.on("error", () => socket.destroy()).pipe(socket));
server.listen(8080, "::");
process.once("SIGTERM", () => process.exit(0));

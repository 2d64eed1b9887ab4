// Connections that a program of a guest makes out of the network namespace "client".
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { linesOf } from "./shell.ts";

/** How long an answer or a refusal that should come may take, on a machine with much else to do. */
const PATIENCE_SECONDS = 60;
/** How long nothing is waited for. */
const SILENCE_SECONDS = 5;

/** What becomes of a connection. Where nobody says that he has the address, the kernel gives up after three seconds: that is silence too. */
export type Attempt = "answered" | "refused" | "silence";

/** Try to connect by TCP. @throws {Error} for any other end than the three. */
export async function attempt(address: string, port: number): Promise<Attempt> {
  const script = `exec 3<>/dev/tcp/${address}/${port}`;
  const command = ["netns", "exec", "client", "env", "LC_ALL=C", "timeout", String(PATIENCE_SECONDS), "bash", "-c", script];
  const child = spawn("ip", command, { stdio: ["ignore", "ignore", "pipe"] });
  const [said, [code]] = await Promise.all([text(child.stderr), once(child, "close") as Promise<[number]>]);
  if (code === 0) return "answered";
  if (said.includes("Connection refused")) return "refused";
  if (code === 124 || said.includes("No route to host")) return "silence";
  throw new Error(`connecting to ${address}, port ${port}: exit code ${code}, ${said}`);
}

/** A connection to a server that echoes. */
export interface EchoClient {
  /** Whether a word comes back. Nothing that should come is waited for much longer than nothing that shouldn't. */
  talks(expected: "answer" | "silence"): Promise<"yes" | "no">;
  end(): void;
}

/** Connect to a server that echoes, and stay connected. */
export async function connectToEcho(address: string, port: number): Promise<EchoClient> {
  // What went unanswered comes again later, so answers to earlier words are passed over.
  const answer = "found=nothing; while read -t $patience word <&3 2>&-; do [ $word = $line ] && found=$word && break; done; echo $found";
  const script = `trap '' PIPE; exec 3<>/dev/tcp/${address}/${port} && echo up; while read line patience; do echo $line >&3 2>&-; ${answer}; done`;
  const child = spawn("ip", ["netns", "exec", "client", "bash", "-c", script], { stdio: ["pipe", "pipe", "inherit"] });
  const line = linesOf(child);
  if ((await line()) !== "up") throw new Error(`no connection to ${address}, port ${port}`);
  let count = 0;
  return {
    async talks(expected) {
      child.stdin.write(`word${++count} ${expected === "answer" ? PATIENCE_SECONDS : SILENCE_SECONDS}\n`);
      return (await line()) === `word${count}` ? "yes" : "no";
    },
    end: () => void child.stdin.end(),
  };
}

import { fileURLToPath } from "node:url";
import { needs } from "@turnout/house/needs";
import { describe, expect, test } from "vitest";
import { FROM_SOURCES, scriptInNamespace, type ScriptOutcome } from "./test-support/namespace.ts";
import { CART } from "./test-support/toy-environment.ts";

const NFT_MAIN = fileURLToPath(new URL("../../backend-nft/src/main.ts", import.meta.url));

/** Run a shell script in a pid namespace of its own too, with which everything it started ends. */
function inNamespace(script: string): Promise<ScriptOutcome> {
  const text = `S="$T serve --source file:cart.yaml --listen unix://$PWD/node.sock"
    N="${FROM_SOURCES} ${NFT_MAIN} --api unix://$PWD/node.sock --node-name node1"
    until_so() { for i in $(seq 1 400); do if eval "$1" >/dev/null 2>&1; then return 0; fi; sleep 0.05; done; echo "never: $1"; exit 1; }
    ${script}`;
  return scriptInNamespace({ "cart.yaml": CART }, text, ["-p", "-f", "--kill-child"]);
}

describe("a node-state server and turnout-nft as two processes on a real kernel", needs("root", "netns", "nft", "ip"), () => {
  test("the rules outlive a node-state server that is killed, and follow the one that comes after it", async () => {
    const outcome = await inNamespace(`
      $S >server.log 2>&1 & server=$!
      $N >nft.log 2>&1 & nft=$!
      until_so 'nft list map ip turnout services | grep 10.96.0.10'
      # The other family has no Service, and a table all the same.
      until_so 'nft list map ip6 turnout services'
      kill -9 $server
      until_so 'grep "node-state API is away" nft.log'
      nft -j list ruleset | md5sum >before
      # The socket's file is still there, and stale.
      test -S node.sock && echo stale
      sleep 0.3
      nft -j list ruleset | md5sum | cmp - before && echo same
      sed -i s/10.96.0.10/10.96.0.11/g cart.yaml
      $S >>server.log 2>&1 & server=$!
      until_so 'nft list map ip turnout services | grep 10.96.0.11'
      nft list map ip turnout services | grep -c 10.96.0.10
      kill -TERM $nft; wait $nft; echo "nft exit $?"
      kill -TERM $server; wait $server; echo "server exit $?"
      nft list map ip turnout services | grep -c 10.96.0.11
      test -e node.sock || echo gone`);
    expect(outcome.out).toBe("stale\nsame\n0\nnft exit 0\nserver exit 0\n1\ngone\n");
  });

  test("output that can't be taken ends it with 1 and a line, or quietly", async () => {
    const outcome = await inNamespace(`
      $S >server.log 2>&1 &
      $N --once --dry-run >/dev/full 2>err.log; echo "exit $?"; tail -1 err.log
      $N --once --dry-run >/dev/full 2>&1; echo "exit $?"
      $N --once --dry-run 2>&1 | true`);
    expect(outcome.out).toMatch(/^exit 1\nturnout-nft: \[tool_failed\] what was asked for can't be written .*ENOSPC.*\nexit 1\n$/);
    expect(outcome.err).toBe("");
  });

  test("a socket that one has no right to is told at once, and nobody waits for it", async () => {
    const outcome = await inNamespace(`
      chmod 755 .
      $S --socket-mode 0600 >server.log 2>&1 &
      until_so 'test -S node.sock'
      setpriv --reuid=12345 --regid=12345 --clear-groups $N --once --dry-run 2>&1 >/dev/null | tail -1`);
    expect(outcome.out).toMatch(/^turnout-nft: \[permission_denied\] no connection comes about \(connect EACCES .*see --socket-mode/);
  });

  test("--once programs what the node-state server says and leaves it; a second time there is nothing to do", async () => {
    const outcome = await inNamespace(`
      $S >server.log 2>&1 &
      $N --once; echo "exit $?"
      nft list map ip turnout services | grep -c 10.96.0.10
      $N --once --dry-run`);
    expect(outcome.out).toBe("exit 0\n1\n");
  });
});

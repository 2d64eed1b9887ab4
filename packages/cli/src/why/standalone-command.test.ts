import { expect, test } from "vitest";
import { standaloneCommand } from "./standalone-command.ts";

const KNOWN = ["source", "node-name", "cluster-cidr", "config", "backend", "backend-option", "masquerade-all", "v"];
const ASKED = { from: "10.1.0.7", to: "10.96.0.10:80", protocol: "tcp" };

test.each<readonly [name: string, args: string | undefined, command: string]>([
  ["is not known", undefined, "--source SOURCE --node-name NODE"],
  ["read a file", "run --source file:/etc/shop.yaml --node-name n1", "--source file:/etc/shop.yaml --node-name n1"],
  [
    "read the API server, as nobody said otherwise",
    "run --config /var/lib/kube-proxy/config.conf",
    "--source kube --config /var/lib/kube-proxy/config.conf",
  ],
  [
    "had flags that why has not",
    "run --backend nft --web-page --metrics-bind-address 127.0.0.1:1 --cluster-cidr=10.1.0.0/16 --masquerade-all -v --v=4",
    "--source kube --backend nft --cluster-cidr=10.1.0.0/16 --masquerade-all",
  ],
  [
    "had a value in the flag's own word, and another word behind it",
    "run --node-name=n1 extra --source=kube",
    "--node-name=n1 --source=kube",
  ],
])("a proxy whose command line %s is asked without it", (_name, args, flags) => {
  expect(standaloneCommand(ASKED, args?.split(" "), KNOWN)).toBe(`turnout why 10.1.0.7 10.96.0.10:80 ${flags}`);
});

test("the question stays as it was typed, and what a shell reads otherwise is quoted", () => {
  const asked = { from: "host", to: "[fd00::1]:53", protocol: "udp", in: "eth0" };
  expect(standaloneCommand(asked, ["run", "--source", "file:/a$b"], KNOWN)).toBe(
    "turnout why host [fd00::1]:53 --protocol udp --in eth0 --source 'file:/a$b'",
  );
});

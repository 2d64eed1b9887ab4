/** What a browser has no host for. The playground brings hosts in memory, so nobody calls these. @throws {Error} always */
function noHost(): never {
  throw new Error("there is no host in a browser");
}

export {
  noHost as createEbpfWorld,
  noHost as createIpvsWorld,
  noHost as createLinuxWorld,
  noHost as createNodeSockets,
  noHost as createWinkernelWorld,
  noHost as createWorld,
};

// Calls of connect right behind one another, with nothing of Node's in between.
import { AF, c, errno, SOCKET, sure } from "../testing/calls.ts";
import { socketAddress } from "../testing/place.ts";

/**
 * Connect one UDP socket over IPv4 again and again: a program and a change of its maps meet within nanoseconds, or never.
 * Gives the numbers of errors, each once; it stops at the first of them.
 */
export function connectOften(address: string, port: number, times: number): { readonly errors: readonly number[] } {
  const name = socketAddress(address, port, true);
  const fd = sure(c.socket(AF.inet, SOCKET.datagram, 0), "socket");
  for (let time = 0; time < times; time += 1) if (c.connect(fd, name, name.length) !== 0) return { errors: [errno()] };
  return { errors: [] };
}

/** Have so many sockets of TCP ask over IPv4. None waits for its answer. */
export function askByCrowd(address: string, port: number, sockets: number): void {
  const name = socketAddress(address, port, true);
  for (let count = 0; count < sockets; count += 1) {
    const fd = sure(c.socket(AF.inet, SOCKET.stream, 0), "socket");
    c.connect(fd, name, name.length);
    c.close(fd);
  }
}

/** The right to use a device for a while. Every command carries the token; the host refuses an older one. */
export interface Lease {
  device: string;
  holder: string;
  /** Fencing token: grows with every lease of the device. */
  token: number;
  /** Milliseconds the lease lives without renewal. */
  ttlMs: number;
}

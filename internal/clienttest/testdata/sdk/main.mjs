// Asks what @wormhole-foundation/sdk asks an explorer and a guardian. Arguments: the
// address of the archive and a JSON of what to ask. Each answer is a line of JSON.
import { deserialize, UniversalAddress, toChain, wormhole } from "@wormhole-foundation/sdk";

const [api, asked] = [process.argv[2], JSON.parse(process.argv[3])];
const wh = await wormhole("Mainnet", [], { api });
const say = (name, value) =>
  console.log(JSON.stringify({ name, value }, (_, v) => (typeof v === "bigint" ? v.toString() : v)));
const summary = (vaa) =>
  vaa && {
    id: `${vaa.emitterChain}/${vaa.emitterAddress}/${vaa.sequence}`,
    set: vaa.guardianSet,
    signatures: vaa.signatures.length,
    payload: vaa.payloadName ?? null,
  };
const idOf = ([chain, emitter, sequence]) => ({
  chain: toChain(Number(chain)),
  emitter: new UniversalAddress(emitter),
  sequence: BigInt(sequence),
});

for (const { id, kind } of asked.ids) {
  say("id", summary(await wh.getVaa(idOf(id.split("/")), kind, 5000)));
}
for (const tx of asked.txs) {
  say("tx", summary(await wh.getVaa(tx, "Uint8Array", 5000)));
}
const status = await wh.getTransactionStatus(idOf(asked.status.split("/")), 5000);
say("status", { id: status.id, txHash: status.txHash, origin: status.globalTx.originTx.txHash });
say("enqueued", await wh.getIsVaaEnqueued?.(idOf(asked.status.split("/"))) ?? false);
say("absent", await wh.getVaa(idOf(asked.absent.split("/")), "Uint8Array", 1000));
say("waiting", asked.late);
say("late", summary(await wh.getVaa(idOf(asked.late.split("/")), "Uint8Array", 60000)));
const bytes = await wh.getVaaBytes(idOf(asked.late.split("/")), 5000);
say("bytes", { base64: Buffer.from(bytes).toString("base64"), again: summary(deserialize("Uint8Array", bytes)) });

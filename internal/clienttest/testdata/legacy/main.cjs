// Asks what @certusone/wormhole-sdk asks a guardian by gRPC-Web. Arguments: the address
// of the archive and a JSON of what to ask. Each answer is a line of JSON.
const { getSignedVAA, getSignedVAAWithRetry, parseVaa } = require("@certusone/wormhole-sdk");
const { NodeHttpTransport } = require("@improbable-eng/grpc-web-node-http-transport");

const [api, asked] = [process.argv[2], JSON.parse(process.argv[3])];
const say = (name, value) => console.log(JSON.stringify({ name, value }));
const options = { transport: NodeHttpTransport() };
const summary = ({ vaaBytes }) => {
  const vaa = parseVaa(Buffer.from(vaaBytes));
  return {
    id: `${vaa.emitterChain}/${vaa.emitterAddress.toString("hex")}/${vaa.sequence}`,
    base64: Buffer.from(vaaBytes).toString("base64"),
  };
};

(async () => {
  for (const id of asked.ids) {
    say("id", summary(await getSignedVAA(api, ...args(id), options)));
  }
  for (const [chain, emitter, sequence] of asked.bad) {
    try {
      await getSignedVAA(api, Number(chain), emitter, sequence, options);
    } catch (e) {
      say("bad", { code: e.code, message: e.message });
    }
  }
  const nowhere = "http://127.0.0.1:1";
  try {
    await getSignedVAAWithRetry([api, nowhere], ...args(asked.absent), options, 10, 2);
  } catch (e) {
    say("absent", { code: e.code });
  }
  say("waiting", asked.late);
  say("late", summary(await getSignedVAAWithRetry([api], ...args(asked.late), options, 100, 600)));
})();

function args(id) {
  const [chain, emitter, sequence] = id.split("/");
  return [Number(chain), emitter, sequence];
}

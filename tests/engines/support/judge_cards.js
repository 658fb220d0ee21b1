// Reads a JSON array of Adaptive Cards on stdin; writes the errors of Microsoft's own parser for each.
const cards = require(process.argv[2]);
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));

function faults(payload) {
  const context = new cards.SerializationContext(cards.Versions.v1_5);
  const card = new cards.AdaptiveCard();
  card.parse(payload, context);
  const parsed = Array.from({ length: context.eventCount }, (_, place) => context.getEventAt(place));
  return [...parsed, ...card.validateProperties().validationEvents].map((event) => event.message);
}

process.stdout.write(JSON.stringify(given.map(faults)));

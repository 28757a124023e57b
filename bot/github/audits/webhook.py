"""Whether GitHub's deliveries reach the service, by the App's own log of them."""

from collections.abc import Iterator

from bot.github import webhook
from bot.github.audits.facts import AppFacts, Delivery
from service.provider.audits import Finding, error, note, warning

ID = "webhook"
FINE = "GitHub's recent deliveries reached the service."


def decide(facts: AppFacts) -> Iterator[Finding]:
    """Yield what is wrong with the address, then with the deliveries."""
    public, hook = facts.subject.webhook_url, facts.hook_url
    wanted = f"{public}{webhook.PATH}" if public else None
    there = f"Open {facts.settings_url}, then “General”, and set the webhook URL to"
    own = wanted or f"the address of this service as GitHub reaches it, with `{webhook.PATH}`"
    if not hook:
        yield error(ID, "The App has no webhook URL.", f"{there} {own}.")
    elif wanted is not None and hook.rstrip("/") != wanted:
        yield error(
            ID,
            f"The App's webhook URL is {hook}, but this service receives at {wanted}.",
            f"{there} {wanted}, or correct HEADGATE_PUBLIC_URL.",
        )
    if not facts.deliveries:
        yield note(ID, "GitHub has delivered nothing in the last days.")
        return
    newest = facts.deliveries[0]
    lost = _lost(facts.deliveries)
    if not newest.is_success:
        yield error(
            ID,
            f"The newest delivery (`{newest.event}`) failed: {newest.status}. "
            f"Of the last {len(facts.deliveries)}, {len(lost)} did not arrive.",
            f"Let GitHub reach the service: {there[0].lower()}{there[1:]} "
            f"{own}, with the same secret as "
            "HEADGATE_GITHUB_WEBHOOK_SECRET.",
        )
    elif lost:
        yield warning(
            ID,
            f"Of the last {len(facts.deliveries)} deliveries, {len(lost)} did not arrive, for "
            f"example `{lost[0].event}`: {lost[0].status}. The newest one did.",
            "Nothing, if the service was down: it has GitHub deliver them again. Otherwise look "
            "at the proxy in front of it.",
        )


def _lost(deliveries: tuple[Delivery, ...]) -> list[Delivery]:
    arrived = {one.guid for one in deliveries if one.is_success}
    return [one for one in deliveries if one.guid not in arrived]

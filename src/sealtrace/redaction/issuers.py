"""Tokens whose issuer gave them a prefix: the surest secrets there are.

Written from the issuers' own descriptions of their token formats. A prefix alone proves little
(`sk-learn-contrib-project`), so what follows it must also look made by a generator.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable
from typing import Final

from .detector import Detector, Span, context_before, glued
from .validators import entropy, jwt, placeholder

__all__ = ["issued_tokens"]

_W: Final = "[A-Za-z0-9_-]"
_A: Final = "[A-Za-z0-9]"
_HEX: Final = "[0-9a-fA-F]"

# name: prefixes, then the pattern of the rest
_ISSUERS: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "openai": (("sk-",), rf"{_W}{{20,300}}"),
    "aws_access_key": (("AKIA", "ASIA", "ABIA", "ACCA"), r"[A-Z2-7]{16}"),
    "aws_bedrock": (("ABSKQmVkcm9ja0FQSUtleS",), r"[A-Za-z0-9+/]{20,400}={0,2}"),
    "aws_bedrock_short": (("bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t",), r"[A-Za-z0-9+/]{0,1000}={0,2}"),
    "github": (("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), rf"{_A}{{36,255}}"),
    "github_fine_grained": (("github_pat_",), r"[A-Za-z0-9_]{22,255}"),
    "gitlab": (
        ("glpat-", "glptt-", "gldt-", "glrt-", "glrtr-", "glft-", "glimt-", "glagent-", "gloas-", "glcbt-", "glffct-",
         "glsoat-", "glwt-"),
        r"[A-Za-z0-9_.-]{18,300}",
    ),
    "gitlab_runner": (("GR1348941",), rf"{_W}{{20}}"),
    "gitlab_session": (("_gitlab_session=",), r"[0-9a-z]{32}"),
    "slack": (
        ("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxe.xoxb-", "xoxe.xoxp-"),
        r"[A-Za-z0-9%-]{16,300}",
    ),
    "slack_app": (("xapp-",), r"[0-9]-[A-Za-z0-9-]{20,250}"),
    "google_oauth": (("ya29.", "GOCSPX-"), rf"{_W}{{20,400}}"),
    "stripe": (("sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"), rf"{_A}{{10,247}}"),
    "stripe_webhook": (("whsec_",), r"[A-Za-z0-9+/=]{24,100}"),
    "square": (("sq0atp-", "sq0csp-", "sq0idp-"), rf"{_W}{{20,60}}"),
    "twilio": (("SK",), r"[0-9a-f]{32}"),
    "sendgrid": (("SG.",), r"[A-Za-z0-9_=-]{16,32}\.[A-Za-z0-9_=-]{16,64}"),
    "mailgun": (("key-", "pubkey-"), r"[0-9a-f]{32}"),
    "sendinblue": (("xkeysib-", "xsmtpsib-"), r"[0-9a-f]{64}-[A-Za-z0-9]{16}"),
    "npm": (("npm_",), rf"{_A}{{36}}"),
    "pypi": (("pypi-",), rf"{_W}{{50,1000}}"),
    "rubygems": (("rubygems_",), rf"{_HEX}{{48}}"),
    "clojars": (("CLOJARS_",), rf"{_A}{{60}}"),
    "nuget": (("oy2",), r"[a-z0-9]{43}"),
    "docker": (("dckr_pat_", "dckr_oat_"), rf"{_W}{{24,60}}"),
    "huggingface": (("hf_", "api_org_"), r"[A-Za-z]{30,40}"),
    "digitalocean": (("dop_v1_", "doo_v1_", "dor_v1_"), r"[a-f0-9]{64}"),
    "shopify": (("shpat_", "shpca_", "shppa_", "shpss_"), rf"{_HEX}{{32}}"),
    "atlassian": (("ATATT3", "ATCTT3", "ATBB", "ATTA"), r"[A-Za-z0-9_=-]{28,260}"),
    "databricks": (("dapi", "dose", "dkea"), r"[a-f0-9]{32}(?:-[0-9])?"),
    "doppler": (("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), r"[A-Za-z0-9._-]{40,100}"),
    "grafana": (("glc_", "glsa_"), r"[A-Za-z0-9+/_]{32,400}={0,3}"),
    "vault": (("hvs.", "hvb.", "hvr."), rf"{_W}{{24,400}}"),
    "terraform": (("atlasv1.",), r"[A-Za-z0-9_=-]{60,70}"),
    "heroku": (("HRKU-",), rf"{_W}{{36,80}}"),
    "linear": (("lin_api_", "lin_oauth_"), rf"{_A}{{32,64}}"),
    "notion": (("ntn_", "secret_"), rf"{_A}{{43,50}}"),
    "new_relic": (("NRAK-", "NRJS-", "NRII-", "NRRA-", "NRIQ-"), rf"{_W}{{19,40}}"),
    "fly": (("fo1_", "fm1_", "fm1a_", "fm1r_", "fm2_"), r"[A-Za-z0-9+/_-]{40,1000}={0,3}"),
    "planetscale": (("pscale_pw_", "pscale_tkn_", "pscale_oauth_"), r"[A-Za-z0-9_=.-]{30,66}"),
    "postman": (("PMAK-",), rf"{_HEX}{{24}}-{_HEX}{{34}}"),
    "prefect": (("pnu_",), rf"{_A}{{36}}"),
    "readme": (("rdme_",), r"[a-z0-9]{70}"),
    "sentry": (("sntryu_",), r"[0-9a-f]{64}"),
    "sentry_org": (("sntrys_eyJ",), r"[A-Za-z0-9+/=_]{60,300}"),
    "shippo": (("shippo_live_", "shippo_test_"), r"[0-9a-f]{40}"),
    "sourcegraph": (("sgp_",), rf"(?:{_HEX}{{16}}_|local_)?{_HEX}{{40}}"),
    "perplexity": (("pplx-",), rf"{_A}{{40,64}}"),
    "groq": (("gsk_",), rf"{_A}{{40,64}}"),
    "xai": (("xai-",), rf"{_A}{{60,100}}"),
    "replicate": (("r8_",), rf"{_A}{{37}}"),
    "langchain": (("lsv2_pt_", "lsv2_sk_", "ls__"), r"[A-Za-z0-9_]{30,60}"),
    "pinecone": (("pcsk_",), rf"{_W}{{40,90}}"),
    "tavily": (("tvly-",), rf"{_W}{{24,60}}"),
    "jina": (("jina_",), rf"{_W}{{50,80}}"),
    "cerebras": (("csk-",), r"[a-z0-9]{40,60}"),
    "tailscale": (("tskey-",), rf"{_W}{{20,120}}"),
    "supabase": (("sbp_", "sb_secret_"), rf"{_W}{{24,60}}"),
    "netlify": (("nfp_", "nfc_", "nfo_"), rf"{_A}{{36}}"),
    "circleci": (("CCIPAT_", "CCIPRJ_"), rf"{_W}{{40,90}}"),
    "buildkite": (("bkua_", "bkpt_"), r"[a-f0-9]{40}"),
    "dynatrace": (("dt0c01.", "dt0s16.", "dt0s01."), rf"{_A}{{24}}\.{_A}{{64}}"),
    "duffel": (("duffel_test_", "duffel_live_"), r"[A-Za-z0-9_=-]{40,50}"),
    "easypost": (("EZAK", "EZTK"), rf"{_A}{{54}}"),
    "flutterwave": (("FLWPUBK_TEST-", "FLWPUBK-", "FLWSECK_TEST-", "FLWSECK-"), rf"{_HEX}{{12,32}}(?:-X)?"),
    "frameio": (("fio-u-",), r"[A-Za-z0-9_=-]{60,70}"),
    "harness": (("pat.", "sat."), rf"{_W}{{22}}\.{_A}{{24}}\.{_A}{{20}}"),
    "infracost": (("ico-",), rf"{_A}{{32}}"),
    "intra42": (("s-s4t2ud-", "s-s4t2af-"), r"[a-f0-9]{64}"),
    "octopus": (("API-",), r"[A-Z0-9]{26}"),
    "openshift": (("sha256~",), rf"{_W}{{43}}"),
    "onepassword_account": (("ops_eyJ",), r"[A-Za-z0-9+/]{100,1000}={0,3}"),
    "onepassword_key": (("A3-",), r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}"),
    "age": (("AGE-SECRET-KEY-1",), r"[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    "adafruit": (("aio_",), rf"{_A}{{28}}"),
    "airtable": (("pat",), rf"{_A}{{14}}\.[a-f0-9]{{64}}"),
    "alibaba": (("LTAI",), rf"{_A}{{17,24}}"),
    "tencent": (("AKID",), rf"{_A}{{32}}"),
    "yandex": (("t1.", "AQVN", "YCA", "YCM"), r"[A-Za-z0-9_=-]{34,80}(?:\.[A-Za-z0-9_-]{60,100}={0,2})?"),
    "contentful": (("CFPAT-",), rf"{_W}{{43}}"),
    "defined_networking": (("dnkey-",), r"[a-z0-9=_-]{26}-[a-z0-9=_-]{52}"),
    "typeform": (("tfp_",), r"[A-Za-z0-9_.=-]{40,64}"),
    "facebook": (("EAA",), rf"{_A}{{30,300}}"),
    "settlemint": (("sm_pat_", "sm_aat_", "sm_sat_"), rf"{_A}{{16}}"),
    "scalingo": (("tk-us-",), rf"{_W}{{48}}"),
    "jfrog": (("AKCp", "cmVmdGtu"), rf"{_A}{{50,80}}"),
    "pulumi": (("pul-",), r"[a-f0-9]{40}"),
    "figma": (("figd_", "figo_"), rf"{_W}{{38,60}}"),
    "dropbox": (("sl.",), rf"{_W}{{130,1000}}"),
    "plaid": (("access-sandbox-", "access-development-", "access-production-"), r"[0-9a-f-]{36}"),
    "razorpay": (("rzp_live_", "rzp_test_"), rf"{_A}{{14,40}}"),
    "cloudflare_origin": (("v1.0-",), r"[a-f0-9]{24}-[a-f0-9]{146}"),
    "microsoft_teams": (("https://outlook.office.com/webhook/",), r"[A-Za-z0-9@/-]{40,200}"),
    "discord_bot": (("MT", "Nz", "OD", "MD", "ND"), rf"{_W}{{21,26}}\.{_W}{{6}}\.{_W}{{27,40}}"),
    "okta": (("00",), r"[A-Za-z][A-Za-z0-9_-]{38}[A-Za-z0-9_]"),
    "private_token": (("gitea_", "tok_live_", "api_live_", "prod_sk_"), rf"{_W}{{24,80}}"),
}  # fmt: skip

# May have no sixteen word characters in a row, so they are looked for by their prefixes.
_BROKEN: Final = frozenset({"stripe_webhook", "grafana", "fly", "sentry_org", "onepassword_account", "microsoft_teams"})

# Handed to browsers on purpose and restricted by referrer: a secret only where somebody calls it one.
_PUBLIC: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "google_api": (("AIza",), rf"{_W}{{35}}"),
    "mapbox": (("pk.", "sk."), r"[A-Za-z0-9]{60,200}\.[A-Za-z0-9_-]{22}"),
    "stripe_publishable": (("pk_live_", "pk_test_"), rf"{_A}{{10,99}}"),
}

_CALLED_A_KEY: Final = re.compile(r"(?i)key|token|secret|credential|auth|gemini|google_")


def issued_tokens(*, strict: bool) -> tuple[Detector, ...]:
    """All of them; without `strict`, keys that are public by design only where they are called keys."""
    out = [_detector(name, *entry, _generated) for name, entry in _ISSUERS.items()]
    out += [_detector(name, *entry, _generated if strict else _named) for name, entry in _PUBLIC.items()]
    out.append(Detector("jwt", "JWT", rf"eyJ{_W}{{8,1000}}\.{_W}{{8,}}(?:\.{_W}*){{0,3}}", ("eyj",), resolve=_is_jwt))
    return tuple(out)


def _detector(
    name: str, prefixes: tuple[str, ...], rest: str, resolve: Callable[[str, int, int], Iterable[Span]]
) -> Detector:
    starts = "|".join(re.escape(prefix) for prefix in prefixes)
    return Detector(
        name,
        "SECRET",
        f"(?:{starts}){rest}",
        tuple(prefix.lower() for prefix in prefixes),
        prefixes=() if name in _BROKEN else prefixes,
        resolve=resolve,
    )


_REST: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}")


def _generated(text: str, start: int, end: int) -> Iterable[Span]:
    if end - start >= 1000:  # RE2 counts no further
        rest = _REST.match(text, end)
        end = rest.end() if rest else end
    if glued(text, start, end) or text[end : end + 1] == "_" or text[start - 1 : start] == ".":
        return ()
    value = text[start:end]
    if _checked(value):
        return ((start, end, "SECRET"),)
    if placeholder(value) or "EXAMPLEEXAMPLE" in value:
        return ()
    body = _PREFIXES.sub("", value, count=1)
    digits = sum("0" <= character <= "9" for character in body)
    both_cases = not body.islower() and not body.isupper()
    one_piece = both_cases and "-" not in body  # words between hyphens are a name
    enough = digits >= (1 if one_piece or body.isupper() else 2) or (one_piece and entropy(body) >= 3.2)
    return ((start, end, "SECRET"),) if enough and entropy(body) >= 2.7 else ()


_PREFIXES: Final = re.compile(
    "|".join(
        re.escape(prefix)
        for prefix in sorted((one for prefixes, _ in _ISSUERS.values() for one in prefixes), key=len, reverse=True)
    )
)


def _named(text: str, start: int, end: int) -> Iterable[Span]:
    if _CALLED_A_KEY.search(context_before(text, start, 40)):
        return _generated(text, start, end)
    return ()


def _is_jwt(text: str, start: int, end: int) -> Iterable[Span]:
    if start > 0 and text[start - 1].isalnum():
        return ()
    return ((start, end, "JWT"),) if jwt(text[start:end]) else ()


_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _checked(value: str) -> bool:
    """Whether the last six characters are the CRC-32 of the rest in base 62 (GitHub, npm).

    A right check settles it. A wrong one settles nothing: formats change without notice.
    """
    prefix, _, body = value.partition("_")
    if prefix not in {"ghp", "gho", "ghu", "ghs", "ghr", "npm"} or len(body) != 36:
        return False
    number = zlib.crc32(body[:30].encode("ascii", "replace"))
    out = ""
    while number:
        number, rest = divmod(number, 62)
        out = _BASE62[rest] + out
    return out.rjust(6, "0") == body[30:]

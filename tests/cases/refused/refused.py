"""KVCacheTiers that are wrong without breaking a CEL rule, and what a local command says of them."""

from typing import Final

from tests.cases.kvcachetier import DISK, REMOTE
from tests.cases.refused.refused_case import Refused
from tests.cases.refused.refused_fields import REFUSED_FIELDS
from tests.cases.refused.refused_kept import REFUSED_KEPT

from kvtier_operator.api.spec.gpu import Gpu

_NO_STORE: Final = (
    "is not a store URL; write redis://HOST:PORT, rediss://, valkey:// or valkeys://, several HOST:PORT "
    "with commas, mooncake://HOST:PORT or s3://BUCKET/PREFIX; user and password belong in the Secret "
    "of credentials.secretRef"
)

# Wrong resources beyond those that the rules refuse. The API server refuses them too, in its own words.
REFUSED: Final = {
    **REFUSED_FIELDS,
    **REFUSED_KEPT,
    "negative capacity": Refused(
        {"spec.tiers.cpu.capacity": "-1Gi"},
        "spec.tiers.cpu.capacity: '-1Gi' is not a size; it must be more than 0 bytes",
    ),
    "a password in the store's URL": Refused(
        {"spec.tiers.remote": {"capacity": "1Ti", "url": "redis://user:hunter2@cache:6379"}},
        f"spec.tiers.remote.url: the text {_NO_STORE}",
    ),
    "a store without a host": Refused(
        {"spec.tiers.remote": {"capacity": "1Ti", "url": "redis://:6379"}},
        f"spec.tiers.remote.url: the text {_NO_STORE}",
    ),
    "a port that no server has": Refused(
        {"spec.tiers.remote": {"capacity": "1Ti", "url": "redis://cache:65536"}},
        f"spec.tiers.remote.url: the text {_NO_STORE}",
    ),
    "a share that an ACL would read as a pattern": Refused(
        {"spec.tiers.remote": {**REMOTE, "shareAs": "team-*"}},
        "spec.tiers.remote.shareAs: the text is not a valid share name; write a-z, 0-9, -, . and /, with a "
        "letter or a digit at both ends",
    ),
    "no capacity": Refused(
        {"spec.tiers.cpu.capacity": 0},
        "spec.tiers.cpu.capacity: '0' is not a size; it must be more than 0 bytes",
    ),
    "capacity beyond all bounds": Refused(
        {"spec.tiers.cpu.capacity": "2Ei"},
        "spec.tiers.cpu.capacity: '2Ei' is too large; the largest size is 1Ei",
    ),
    "capacity is no quantity": Refused(
        {"spec.tiers.cpu.capacity": "100 Gi"},
        "spec.tiers.cpu.capacity: '100 Gi' is not a quantity; write a number with Ki, Mi, "
        "Gi, Ti or k, M, G, T, as in 100Gi",
    ),
    "capacity is a fraction": Refused(
        {"spec.tiers.cpu.capacity": 1.5},
        "spec.tiers.cpu.capacity: expected a quantity such as 100Gi, not the number 1.5",
    ),
    "a fraction of a core": Refused(
        {"spec.engine.resources": {"requests": {"cpu": 0.5}}},
        "spec.engine.resources.requests[cpu]: expected a quantity such as 100Gi, not the number 0.5; quote "
        'it: "0.5"',
    ),
    "capacity is true": Refused(
        {"spec.tiers.cpu.capacity": True},
        "spec.tiers.cpu.capacity: expected a quantity such as 100Gi, not true",
    ),
    "capacity is a list": Refused(
        {"spec.tiers.cpu.capacity": ["1Gi"]},
        "spec.tiers.cpu.capacity: expected a quantity such as 100Gi, not a list",
    ),
    "number as text": Refused(
        {"spec.replicas": "2"}, "spec.replicas: expected a whole number, not the text '2'"
    ),
    "a whole number as a float": Refused(
        {"spec.replicas": 2.0}, "spec.replicas: expected a whole number, not the number 2.0"
    ),
    "fraction of a pod": Refused(
        {"spec.replicas": 1.5}, "spec.replicas: expected a whole number, not the number 1.5"
    ),
    "true for a number": Refused({"spec.replicas": True}, "spec.replicas: expected a whole number, not true"),
    "too few": Refused({"spec.replicas": -1}, "spec.replicas: must be at least 0, not -1"),
    "too many": Refused(
        {"spec.engine.tensorParallelSize": 65}, "spec.engine.tensorParallelSize: must be at most 64, not 65"
    ),
    "a number that no computer has": Refused(
        {"spec.engine.maxModelLen": 10**30},
        "spec.engine.maxModelLen: must be at most 2147483647, not 1000000000000000000000000000000",
    ),
    "a GPU by another name": Refused(
        {"spec.engine.gpu": "A100-80GB"},
        f"spec.engine.gpu: 'A100-80GB' is not one of {', '.join(Gpu)}; did you mean a100-80?",
    ),
    "GPUs by the beginning of their names": Refused(
        {"spec.engine.gpu": "a100"},
        f"spec.engine.gpu: 'a100' is not one of {', '.join(Gpu)}; did you mean a100-40 or a100-80?",
    ),
    "a GPU with its socket": Refused(
        {"spec.engine.gpu": "H100-SXM"},
        f"spec.engine.gpu: 'H100-SXM' is not one of {', '.join(Gpu)}; did you mean h100?",
    ),
    "a header that would be two": Refused(
        {
            "spec.autoscaling": {
                "maxReplicas": 2,
                "prometheusUrl": "http://mimir:8080",
                "prometheus": {"headers": [{"name": "X-Scope-OrgID", "value": "a,Metadata-Flavor=Google"}]},
            }
        },
        "spec.autoscaling.prometheus.headers[0].value: the text is not a value that KEDA passes on; write "
        "letters, digits and . _ ~ : / @ | + -, with no space",
    ),
    "a share of nothing": Refused(
        {"spec.engine.gpuMemoryUtilization": 0},
        "spec.engine.gpuMemoryUtilization: must be more than 0.0, not 0",
    ),
    "text for true": Refused(
        {"spec.tiers.disk": {**DISK, "directIO": "yes"}},
        "spec.tiers.disk.directIO: expected true or false, not the text 'yes'",
    ),
    "nothing may be written": Refused(
        {"spec.tiers.disk": {**DISK, "writesPerHour": 0}},
        "spec.tiers.disk.writesPerHour: '0' is not a bound; give more than 0 bytes, or leave it out "
        "for no bound",
    ),
    "less than nothing may be written": Refused(
        {"spec.tiers.disk": {**DISK, "writesPerHour": "-200Gi"}},
        "spec.tiers.disk.writesPerHour: '-200Gi' is not a bound; give more than 0 bytes, or leave it out "
        "for no bound",
    ),
    "a bound that is no quantity": Refused(
        {"spec.tiers.disk": {**DISK, "writesPerHour": "200Gi/h"}},
        "spec.tiers.disk.writesPerHour: '200Gi/h' is not a quantity; write a number with Ki, Mi, Gi, Ti or "
        "k, M, G, T, as in 100Gi",
    ),
    "a bound beyond all bounds": Refused(
        {"spec.tiers.disk": {**DISK, "writesPerHour": "2Ei"}},
        "spec.tiers.disk.writesPerHour: '2Ei' is too large; the largest size is 1Ei",
    ),
    "a body that is too large": Refused(
        {"spec.router": {"flavor": "builtin", "maxBodySize": "2Gi"}},
        "spec.router.maxBodySize: '2Gi' is no size for a body; it must be from 64Ki to 1Gi",
    ),
    "a body that is too small": Refused(
        {"spec.router": {"flavor": "builtin", "maxBodySize": 1024}},
        "spec.router.maxBodySize: '1024' is no size for a body; it must be from 64Ki to 1Gi",
    ),
    "a bound that is true": Refused(
        {"spec.tiers.disk": {**DISK, "writesPerHour": True}},
        "spec.tiers.disk.writesPerHour: expected a quantity such as 100Gi, not true",
    ),
    "wrong case": Refused(
        {"spec.backend": "lmcache"},
        "spec.backend: 'lmcache' is not one of KVTier, Native, LMCache, LMCacheMP; did you mean LMCache?",
    ),
    "a choice whose letters are nearest to the wrong one": Refused(
        {"spec.engine.device": "tpu"}, "spec.engine.device: 'tpu' is not one of gpu, cpu"
    ),
    "no such choice": Refused(
        {"spec.router.flavor": "nginx"}, "spec.router.flavor: 'nginx' is not one of llm-d, gaie, builtin"
    ),
    "boolean for a policy": Refused(
        {"spec.tiers.cpu.hugepages.policy": True},
        "spec.tiers.cpu.hugepages.policy: expected one of Require, Prefer, Never, not true",
    ),
    "number for text": Refused(
        {"spec.engine.env": [{"name": "OMP_NUM_THREADS", "value": 4}]},
        'spec.engine.env[0].value: expected text, not the number 4; quote it: "4"',
    ),
    "a line for a variable": Refused(
        {"spec.engine.env": ["HF_TOKEN=hf_secret"]},
        "spec.engine.env[0]: expected a mapping, not text; its fields are name, value, valueFrom",
    ),
    "a line for a variable's name": Refused(
        {"spec.engine.env": [{"name": "HF_TOKEN=hf_secret"}]},
        "spec.engine.env[0].name: the text is not a valid variable name; write letters, digits, _, - and "
        "., no digit first, and its value into value",
    ),
    "a line for arguments": Refused(
        {"spec.engine.extraArgs": "--api-key secret"}, "spec.engine.extraArgs: expected a list, not text"
    ),
    "boolean for text": Refused(
        {"spec.engine.nodeSelector": {"example.com/gpu": True}},
        "spec.engine.nodeSelector[example.com/gpu]: expected text, not true; YAML reads on, "
        'off, yes, no, y and n without quotes as true or false: quote what you wrote, as in "yes"',
    ),
    "the same variable twice": Refused(
        {"spec.engine.env": [{"name": "A", "value": "1"}, {"name": "B"}, {"name": "A", "value": "2"}]},
        "spec.engine.env[2].name: 'A' is there twice, first at index 0; keep one",
    ),
    "the same model twice": Refused(
        {
            "spec.router.gateway": {
                "provider": "standalone",
                "standalone": {"models": [{"name": "m", "resource": "a"}, {"name": "m", "resource": "b"}]},
            }
        },
        "spec.router.gateway.standalone.models[1].name: 'm' is there twice, first at index 0; keep one",
    ),
    "the same host twice": Refused(
        {"spec.router.gateway": {"parentRef": {"name": "g"}, "hostnames": ["a", "a"]}},
        "spec.router.gateway.hostnames[1]: 'a' is there twice, first at index 0; keep one",
    ),
    **{
        f"a path to pass, {path}": Refused(
            {"spec.router.gateway": {"provider": "standalone", "extraPaths": [path]}},
            f"spec.router.gateway.extraPaths[0]: '{path}' is not a path to pass; write /SEGMENT/SEGMENT in "
            "letters, digits and - . _ ~, with no slash at its end, no . or .. as a segment, no query and "
            "no %, or / for all paths",
        )
        for path in (
            *(
                "metrics",
                "/metrics/",
                "//metrics",
                "/a//b",
                "/a/../metrics",
                "/a/.",
                "/a/...",
                "/metrics?a=b",
            ),
            *("/a%2Fmetrics", "/%2e%2e/metrics", "/a;b", "/a#b", "/a b", "/a/*", "/a|b"),
        )
    },
    **{
        f"{host} for a host": Refused(
            {"spec.router.gateway": {"parentRef": {"name": "g"}, "hostnames": [host]}},
            f"spec.router.gateway.hostnames[0]: '{host}' is not a host name; write it in lower case, with no "
            "scheme, port or path, such as llm.example.com or *.example.com",
        )
        for host in ("https://a.example", "A.example", "a.example:8443", "*")
    },
    "a name with a capital": Refused(
        {"spec.router.gateway": {"parentRef": {"name": "g", "namespace": "Front"}}},
        "spec.router.gateway.parentRef.namespace: 'Front' is not a valid name; write a-z, 0-9 and -, with a "
        "letter or a digit at both ends",
    ),
    "a token for the name of its Secret": Refused(
        {"spec.model.tokenSecretRef": {"name": "hf_token", "key": "a b"}},
        "spec.model.tokenSecretRef.name: the text is not a valid name; write a-z, 0-9, - and ., with a "
        "letter or a digit at both ends and beside each dot\n"
        "spec.model.tokenSecretRef.key: the text is not a valid key of a Secret; write letters, digits, -, _ "
        "and ., and one . at most at its beginning",
    ),
    **{
        f"a name that no object has: {path}{below}": Refused(
            {path: value},
            f"{path}{below}: 'A_b' is not a valid name; write a-z, 0-9, - and ., with a letter or a digit at "
            "both ends and beside each dot",
        )
        for path, value, below in (
            ("spec.imagePullSecrets", [{"name": "A_b"}], "[0].name"),
            ("spec.engine.priorityClassName", "A_b", ""),
            ("spec.router.gateway", {"parentRef": {"name": "A_b"}}, ".parentRef.name"),
            (
                "spec.model.volume",
                {"persistentVolumeClaim": {"claimName": "A_b"}},
                ".persistentVolumeClaim.claimName",
            ),
            ("spec.model.volume", {"ephemeral": {"storageClassName": "A_b"}}, ".ephemeral.storageClassName"),
        )
    },
    **{
        f"prometheusUrl {url}": Refused(
            {"spec.autoscaling": {"maxReplicas": 2, "prometheusUrl": url}},
            f"spec.autoscaling.prometheusUrl: {url!r} is not a base URL; write http://HOST:PORT or "
            "https://HOST:PORT/PATH, with a name, four decimal numbers or a plain IPv6 address, the scheme "
            "in lower case, no password and no query",
        )
        for url in (
            "http://2852039166",
            "http://0xA9.254.43518:80",
            "http://0251.0376.0251.0376",
            "http://169.254.169.254.",
            "http://127.1",
            "http://[::ffff:169.254.169.254]",
            "http://[fe80::1%25eth0]",
            "http://169%2e254.169.254",
            "http://me@169.254.169.254",
        )
    },
    **{
        f"revision {revision!r}": Refused(
            {"spec.model.revision": revision},
            f"spec.model.revision: {revision!r} is not a revision; write a branch, tag or commit in letters, "
            "digits and . _ + @ = -, with / between parts that begin with a letter, a digit or _",
        )
        for revision in (
            "..",
            "../..",
            "%2e%2e",
            "a/../b",
            "a/./b",
            r"a\b",
            "/a",
            "a//b",
            "a?b",
            "a#b",
            "a\n",
            "-x",
        )
    },
    "a scheme in capitals": Refused(
        {"spec.model.source": "S3://bucket/qwen"},
        "spec.model.source: 'S3://bucket/qwen' is not a source; write SCHEME://PLACE, with the scheme in "
        "lower case and no spaces, such as s3://BUCKET/FOLDER",
    ),
    **{
        f"{image} for an image": Refused(
            {"spec.engine.image": image},
            f"spec.engine.image: '{image}' is not an image; write HOST/NAME:TAG or HOST/NAME@sha256:DIGEST, "
            "with no scheme and no spaces and the name in lower case",
        )
        for image in ("a b", "https://ghcr.io/a/b", "ghcr.io/Team/b:1", "a/b:1 ", "a//b", "a:")
    },
    "a version that YAML reads as a shorter one": Refused(
        {"spec.router.version": 0.10},
        'spec.router.version: expected text, not the number 0.1; quote it: "0.10", which YAML reads as 0.1 '
        "without quotes",
    ),
    "a version that YAML reads as a number": Refused(
        {"spec.router.version": 1.5},
        'spec.router.version: expected text, not the number 1.5; quote it: "1.5"',
    ),
    "a fraction for text": Refused(
        {"spec.engine.env": [{"name": "RATIO", "value": 0.1}]},
        "spec.engine.env[0].value: expected text, not the number 0.1; quote it as it was written, "
        '"0.1" or "0.10": YAML drops a 0 at the end of a number',
    ),
    "mapping for a list": Refused(
        {"spec.engine.env": {"A": "1"}}, "spec.engine.env: expected a list, not a mapping"
    ),
    "list for a mapping": Refused(
        {"spec.tiers": [{"cpu": "1Gi"}]},
        "spec.tiers: expected a mapping, not a list; its fields are cpu, disk, remote",
    ),
    "emptyDir with settings": Refused(
        {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"emptyDir": {"medium": "Memory"}}}},
        "spec.tiers.disk.volume.emptyDir: takes no settings here; write {}",
    ),
    "relative path": Refused(
        {"spec.tiers.disk": {"capacity": "1Ti", "volume": {"hostPath": {"path": "nvme"}}}},
        "spec.tiers.disk.volume.hostPath.path: 'nvme' is not an absolute path; begin it with /",
    ),
    "an address in IPv6's clothes": Refused(
        {"spec.router.networkPolicy": {"ipBlocks": ["::ffff:10.0.0.0/104"]}},
        "spec.router.networkPolicy.ipBlocks[0]: '::ffff:10.0.0.0/104' is not an address block; write it as "
        "10.129.0.0/23 or 2001:db8::/64",
    ),
    "several address blocks": Refused(
        {"spec.router.networkPolicy": {"ipBlocks": ["010.0.0.0/8", "10.0.0.0/08", "::/0", "10.0.0.0", ""]}},
        "spec.router.networkPolicy.ipBlocks[0]: '010.0.0.0/8' is not an address block; write it as "
        "10.129.0.0/23 or 2001:db8::/64\n"
        "spec.router.networkPolicy.ipBlocks[1]: '10.0.0.0/08' is not an address block; write it as "
        "10.129.0.0/23 or 2001:db8::/64\n"
        "spec.router.networkPolicy.ipBlocks[3]: '10.0.0.0' is not an address block; write it as "
        "10.129.0.0/23 or 2001:db8::/64\n"
        "spec.router.networkPolicy.ipBlocks[4]: '' is not an address block; write it as "
        "10.129.0.0/23 or 2001:db8::/64",
    ),
    "empty name": Refused({"spec.model.name": ""}, "spec.model.name: must not be empty"),
    "name too long": Refused(
        {"spec.model.name": "m" * 513}, "spec.model.name: must have at most 512 characters, not 513"
    ),
    "too many arguments": Refused(
        {"spec.engine.extraArgs": ["-v"] * 129},
        "spec.engine.extraArgs: must have at most 128 entries, not 129",
    ),
    "several mistakes": Refused(
        {"spec.replicas": -1, "spec.backend": "Redis", "spec.tiers.cpu.size": "1Gi"},
        "spec.replicas: must be at least 0, not -1\n"
        "spec.backend: 'Redis' is not one of KVTier, Native, LMCache, LMCacheMP\n"
        "spec.tiers.cpu.size: unknown field; the fields here are capacity, expectedPrefixTokens, hugepages, "
        "memlock, layeredLoads, retained",
    ),
}

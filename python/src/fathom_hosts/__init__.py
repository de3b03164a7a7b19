"""Places the agents of fathom on many hosts, and passes lines between them and fathom.

The package computes nothing and understands no message of an agent: fathom does. `docs/hosts.md` of
fathom says how to use it, and `docs/agent.md` of fathom what an agent is.
"""

__version__ = "0.1.0"

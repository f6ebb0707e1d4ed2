"""The ledger's vocabulary: one JSON object a line in ``ledger.jsonl``, append-only, written by the login side.

Every record has ``record`` (its kind), ``unix_s``, and, but for ``note``, the key ``point_id``, ``repeat``, ``attempt``.

``intent``     job_name, script: written and fsynced before the scheduler is asked
``submitted``  job_id
``refused``    message: the scheduler said no; nothing was queued
``state``      state, native_state, exit_status, reason: an observation that changed the state, or evidence found
``note``       message
"""

from __future__ import annotations

#!/usr/bin/env python3
"""Makes a server's database as the first release left it, schema version 2,
with an ended job, its data and one result: what an upgrade has to bring along.

usage: old_database.py storage/sqlite/schema_steps.cc DATABASE
"""
import re
import sqlite3
import struct
import sys

TAKEN = 1_700_000_000_000_000  # UNITS: microseconds since 1970.
SHA = 'ab' * 32


def varint(value):
    out = b''
    while value > 0x7f:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """One field of a protobuf message, by the type of its value."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack('<d', value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def measurement():
    """An optfarm.v1.Measurement."""
    environment = field(1, 'Cortex-A72') + field(12, '0.0.1')
    return (field(1, 'float') + field(2, 1) + field(3, field(1, SHA)) +
            field(8, 1234.5) + field(11, 1300.0) + field(14, 50) +
            field(20, environment) + field(24, 'oldpi'))


def calibration():
    """An optfarm.v1.Dataset as the first release filled it in: a picture and an
    array, told apart by their paths, and zeros for what was not given."""
    digest = field(1, SHA) + field(2, 9)
    array = (field(1, 'arrays/2/x.npz') + field(2, digest) + field(3, 'x') +
             field(4, 'left'))
    return (field(1, field(1, 'cats/1.jpg') + field(2, digest)) +
            field(1, array) + field(2, 127.5))


def spec():
    """An optfarm.v1.JobSpec with labels of a record file."""
    digest = field(1, SHA) + field(2, 9)
    return field(8, field(1, 'val.tfrecord:label') + field(2, digest))


def main():
    source, path = sys.argv[1:]
    with open(source, encoding='utf-8') as file:
        steps = re.findall(r'constexpr char k\w+\[\] = R"sql\((.*?)\)sql";',
                           file.read(), re.DOTALL)
    db = sqlite3.connect(path)
    db.execute('PRAGMA journal_mode=WAL')
    db.execute('CREATE TABLE schema_version (version INTEGER PRIMARY KEY,'
               ' name TEXT NOT NULL, applied_time INTEGER NOT NULL)')
    for version, sql in enumerate(steps[:2], 1):
        db.executescript(sql)
        db.execute('INSERT INTO schema_version VALUES (?, ?, ?)',
                   (version, 'of the first release', TAKEN))
    db.execute('INSERT INTO jobs (job_id, spec_digest, state, name, recipe_name,'
               ' model_sha256, model_name, create_time, end_time, from_cache,'
               ' cached_from_job_id, spec_proto, calibration_proto,'
               " outcome_proto) VALUES ('j000000000001', '', 3, '', 'fp32', ?,"
               " 'old.pb', ?, ?, 0, '', ?, ?, x'')",
               (SHA, TAKEN, TAKEN, spec(), calibration()))
    db.execute("INSERT INTO tasks VALUES ('j000000000001/benchmark',"
               " 'j000000000001', 0, 2, 4, 1, 1, 0, 3, 'oldpi', '', '', NULL,"
               " NULL, ?, ?, ?, ?, ?, 1, x'')", (TAKEN,) * 5)
    db.execute("INSERT INTO measurements VALUES (41, 'j000000000001',"
               " 'j000000000001/benchmark', ?, 'fp32', ?, 'old.pb', 4, ?,"
               " 'oldpi', 'float', 1, 1234.5, ?, x'')",
               (TAKEN, SHA, SHA, measurement()))
    db.commit()
    db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()


if __name__ == '__main__':
    main()

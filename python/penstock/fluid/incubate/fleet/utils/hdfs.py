"""HDFSClient: access to a Hadoop file system through its command-line client.

    client = HDFSClient('/opt/hadoop', {'fs.default.name': 'hdfs://10.0.0.1:9000', 'hadoop.job.ugi': 'user,password'})
    client.download('/data/train', 'train')
"""

# Written by tools/dev/gen_names.py.
from penstock._src.names import facade

if facade.TYPE_CHECKING:
    from penstock._src.fleet.hdfs import HDFSClient

__all__ = ['HDFSClient']

facade.make(__name__)

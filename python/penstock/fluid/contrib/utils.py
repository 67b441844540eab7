"""fluid.contrib.utils, which is not part of Penstock: importing works, using says what to use instead."""

from penstock.fluid._absent import absent

__path__, __getattr__ = absent('fluid.contrib.utils', 'HDFS is not reached from here, and tables on pservers are saved '
                               'and loaded by fluid.io; copy files by `hadoop fs`')

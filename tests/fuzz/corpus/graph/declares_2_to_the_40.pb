
=
kConst*
dtype0*$
valueB	€€€€€ "
0123456789
// What one thread of this machine can do at most: multiply-adds that wait for
// nothing, and bytes that come from memory.

#ifndef OPTFARM_TESTS_BENCH_ROOFLINE_H_
#define OPTFARM_TESTS_BENCH_ROOFLINE_H_

namespace optfarm::bench {

struct Roofline {
  // The widest multiply-add that the processor has.
  const char* instructions = "";
  // UNITS: 1e9 floating point operations a second; a multiply-add is two.
  double gigaflops = 0;
  // UNITS: 1e9 bytes a second.
  double gigabytes = 0;
};

// Takes about a second.
Roofline MeasureRoofline();

}  // namespace optfarm::bench

#endif  // OPTFARM_TESTS_BENCH_ROOFLINE_H_

// From what size on matrix products read weights of 4 bits as they are.

#ifndef OPTFARM_ENGINE_RUNTIME_FUSION_INT4_PRODUCTS_H_
#define OPTFARM_ENGINE_RUNTIME_FUSION_INT4_PRODUCTS_H_

#include <cstdint>

namespace optfarm::runtime {

// Weights of matrix products that come in 4 bits stay so in plans where all
// that come in 4 bits, tables among them, would take this much as floats:
// processors wait for them then, and unpacking them while they are multiplied
// costs less. Fewer become floats when a session is made. 8 MB, or what
// OPTFARM_INT4_FROM says. UNITS: bytes.
int64_t Int4ProductsFrom();

// Another size while it lives; the last one made counts.
// THREADS: one at a time in the whole process; for tests.
class Int4ProductsLimit {
 public:
  explicit Int4ProductsLimit(int64_t from);
  ~Int4ProductsLimit();
  Int4ProductsLimit(const Int4ProductsLimit&) = delete;
  Int4ProductsLimit& operator=(const Int4ProductsLimit&) = delete;
};

}  // namespace optfarm::runtime

#endif  // OPTFARM_ENGINE_RUNTIME_FUSION_INT4_PRODUCTS_H_

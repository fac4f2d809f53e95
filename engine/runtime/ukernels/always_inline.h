// For the small functions of inner loops, whose calls would cost more than they
// do, and whose code must not be shared between instruction sets.

#ifndef OPTFARM_ENGINE_RUNTIME_UKERNELS_ALWAYS_INLINE_H_
#define OPTFARM_ENGINE_RUNTIME_UKERNELS_ALWAYS_INLINE_H_

#define OPTFARM_INLINE inline __attribute__((always_inline))
// Behind a lambda's parameters.
#define OPTFARM_INLINE_LAMBDA __attribute__((always_inline))

#endif  // OPTFARM_ENGINE_RUNTIME_UKERNELS_ALWAYS_INLINE_H_

// MKL, which PyTorch multiplies with, takes its AVX-512 kernels on Intel's CPUs only. Preloaded, this answers its question.
int mkl_serv_intel_cpu_true(void) { return 1; }

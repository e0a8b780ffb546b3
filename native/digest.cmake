# cmake -DROOT=native -DOUT=sources.hpp -P digest.cmake: a hash of every file below ROOT, kept in the extension as
# `sources`, so that an extension older than its sources can be told apart.
file(GLOB_RECURSE files RELATIVE ${ROOT} ${ROOT}/*)
foreach(file IN LISTS files)
  file(SHA256 ${ROOT}/${file} hash)
  list(APPEND lines "${file} ${hash}")
endforeach()
list(SORT lines)
list(JOIN lines "\n" text)
string(SHA256 digest "${text}\n")
file(WRITE ${OUT} "#define CHAINRULE_SOURCES \"${digest}\"\n")

# Writes the bytes of file IN as the elements of a C array to file OUT.
#   cmake -D IN=run.desc -D OUT=run_desc.inc -P embed.cmake
file(READ ${IN} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT} "${bytes}\n")
